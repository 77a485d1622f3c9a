/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Costs of a stack or a line as cells of a row: its own, and including all that it led to. A
 * table's list of columns ends with STACK_COST_COLUMNS; the columns before are its own. Sample
 * columns appear only if samples were counted.
 */
#ifndef GPUPROF_COLLECTOR_STACK_COST_CELLS_H
#define GPUPROF_COLLECTOR_STACK_COST_CELLS_H

#include "resolve/stack_costs.h"
#include "table/table.h"

#define STACK_COST_COLUMNS                                                                         \
    CALLS, HOST, WORKS, GPU, BYTES, CALLS_ALL, HOST_ALL, WORKS_ALL, GPU_ALL, BYTES_ALL, HITS, CPU, \
        PYTHON, NATIVE, SYSTEM, HITS_ALL, CPU_ALL, COLUMNS

/* clang-format off */
#define SAMPLE_COLUMNS                                                                             \
    [HITS] = {"samples", "hits", COLUMN_COUNT, 9, .spare = 2, .is_filled = true,                   \
              .doc = "CPU samples (run --sample)"},                                                \
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 11, .is_filled = true, .doc = "CPU time, from samples"},  \
    [PYTHON] = {"python_ns", "Python", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .doc = "the part of the CPU time in the Python interpreter"},                      \
    [NATIVE] = {"native_ns", "native", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .doc = "the part of the CPU time in native code"},                                 \
    [SYSTEM] = {"system_ns", "system", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .doc = "the part of the CPU time in the kernel"},                                  \
    [HITS_ALL] = {"samples_all", NULL, COLUMN_COUNT, .doc = "samples that this line led to"},      \
    [CPU_ALL] = {"cpu_ns_all", "CPU, all", COLUMN_NS, 11, .spare = 1, .is_filled = true,           \
                 .doc = "CPU time that this line led to"}
/* clang-format on */

/* For table.without. */
#define SAMPLE_COLUMNS_BITS                                                                        \
    (1u << HITS | 1u << CPU | 1u << PYTHON | 1u << NATIVE | 1u << SYSTEM | 1u << HITS_ALL |        \
     1u << CPU_ALL)

/* Fills the five cells from CALLS or CALLS_ALL on. The text format leaves zeros empty. */
void stack_cost_fill(const struct stack_cost *cost, enum report_format format, struct cell *cells);

/* The same for the five cells from HITS on and the two from HITS_ALL on. */
void stack_samples_fill(const struct stack_cost *own, const struct stack_cost *all,
                        enum report_format format, struct cell *cells);

/* Prints a JSON member and a comma. */
void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out);

#endif
