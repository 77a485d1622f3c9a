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
#define COST_COLUMNS                                                                               \
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12, .spare = 2, .hides_zero = true,                 \
               .doc = "calls with this stack, or this line as the innermost"},                     \
    [HOST] = {"host_ns", "host", COLUMN_NS, 12, .hides_zero = true,                                \
              .doc = "time of the calls on the host"},                                             \
    [WORKS] = {"gpu_work", "GPU work", COLUMN_COUNT, 12, .spare = 1, .hides_zero = true,           \
               .doc = "work that the calls launched"},                                             \
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 2, .hides_zero = true,                       \
             .doc = "GPU time of that work"},                                                      \
    [BYTES] = {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 1, .hides_zero = true,                 \
               .doc = "bytes that the calls copied or allocated"},                                 \
    [CALLS_ALL] = {"calls_all", NULL, COLUMN_COUNT, .doc = "calls that this line led to"},         \
    [HOST_ALL] = {"host_ns_all", "host, all", COLUMN_NS, 12, .spare = 1, .hides_zero = true,       \
                  .doc = "their time on the host"},                                                \
    [WORKS_ALL] = {"gpu_work_all", NULL, COLUMN_COUNT, .doc = "work that they launched"},          \
    [GPU_ALL] = {"gpu_ns_all", "GPU, all", COLUMN_NS, 12, .spare = 1, .hides_zero = true,          \
                 .doc = "GPU time of that work"},                                                  \
    [BYTES_ALL] = {"bytes_all", NULL, COLUMN_BYTES, .doc = "bytes that they copied or allocated"}, \
    [HITS] = {"samples", "hits", COLUMN_COUNT, 9, .spare = 2, .is_filled = true,                   \
              .hides_zero = true, .doc = "CPU samples (run --sample)"},                            \
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 11, .is_filled = true, .hides_zero = true,                \
             .doc = "CPU time, from samples"},                                                     \
    [PYTHON] = {"python_ns", "Python", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true,                                                                \
                .doc = "the part of the CPU time in the Python interpreter"},                      \
    [NATIVE] = {"native_ns", "native", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true, .doc = "the part of the CPU time in native code"},             \
    [SYSTEM] = {"system_ns", "system", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true, .doc = "the part of the CPU time in the kernel"},              \
    [HITS_ALL] = {"samples_all", NULL, COLUMN_COUNT, .doc = "samples that this line led to"},      \
    [CPU_ALL] = {"cpu_ns_all", "CPU, all", COLUMN_NS, 11, .spare = 1, .is_filled = true,           \
                 .hides_zero = true, .doc = "CPU time that this line led to"}
/* clang-format on */

/* For table.without. */
#define SAMPLE_COLUMNS_BITS                                                                        \
    (1u << HITS | 1u << CPU | 1u << PYTHON | 1u << NATIVE | 1u << SYSTEM | 1u << HITS_ALL |        \
     1u << CPU_ALL)

/* Fills the cells from CALLS on with its own cost, and that of all that it led to (NULL: not in the
 * table). */
void stack_cost_fill(const struct stack_cost *own, const struct stack_cost *all, bool has_samples,
                     struct cell *cells);

/* Prints a JSON member and a comma. */
void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out);

#endif
