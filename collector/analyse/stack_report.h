/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report's table of stacks (--by=stack), or of the Python lines that made the calls
 * (--by=python-line). A row of stacks is a call and its callers, in all processes. A call counts as
 * "own" for the line of its innermost Python frame, and as "all" once for each line above. Without
 * Python frames it counts for the range open around it in a Python process, or for none. With
 * --mine a call counts for the innermost line of the user's own code (shown_frame.h), whichever
 * thread the frames were borrowed from.
 */
#ifndef GPUPROF_COLLECTOR_STACK_REPORT_H
#define GPUPROF_COLLECTOR_STACK_REPORT_H

#include <stdio.h>

#include "analyse/place_lines.h"
#include "resolve/stack_costs.h"
#include "table/table.h"

#define STACK_ROWS_SHOWN_MAX 40 /* in the text; the other forms have all */
#define STACK_SAMPLES_NOTE                                                                         \
    "CPU time is estimated from samples (hits), in the interpreter (Python), in native code, and " \
    "in "                                                                                          \
    "the\nkernel (system)\n"

/* Columns of the costs of a stack or a line: its own, and of all that it led to. A table's list of
 * columns ends with them. Its rows of type ROW have pointers `own` and `all` to a struct
 * stack_cost; NULL: empty. */
#define STACK_COST_COLUMNS                                                                         \
    CALLS, HOST, WORKS, GPU, BYTES, CALLS_ALL, HOST_ALL, WORKS_ALL, GPU_ALL, BYTES_ALL, HITS, CPU, \
        PYTHON, NATIVE, SYSTEM, HITS_ALL, CPU_ALL, COLUMNS

/* clang-format off */
#define COST_COLUMNS(ROW)                                                                          \
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12, .spare = 2, .hides_zero = true,                 \
               MEMBER_OF(ROW, own, calls),                                                         \
               .doc = "calls with this stack, or this line as the innermost"},                     \
    [HOST] = {"host_ns", "host", COLUMN_NS, 12, .hides_zero = true, MEMBER_OF(ROW, own, host_ns),  \
              .doc = "time of the calls on the host"},                                             \
    [WORKS] = {"gpu_work", "GPU work", COLUMN_COUNT, 12, .spare = 1, .hides_zero = true,           \
               MEMBER_OF(ROW, own, works), .doc = "work that the calls launched"},                 \
    [GPU] = {"gpu_ns", "GPU", COLUMN_NS, 12, .spare = 2, .hides_zero = true,                       \
             MEMBER_OF(ROW, own, gpu_ns), .doc = "GPU time of that work"},                         \
    [BYTES] = {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 1, .hides_zero = true,                 \
               MEMBER_OF(ROW, own, bytes), .doc = "bytes that the calls copied or allocated"},     \
    [CALLS_ALL] = {"calls_all", NULL, COLUMN_COUNT, MEMBER_OF(ROW, all, calls),                    \
                   .doc = "calls that this line led to"},                                          \
    [HOST_ALL] = {"host_ns_all", "host, all", COLUMN_NS, 12, .spare = 1, .hides_zero = true,       \
                  MEMBER_OF(ROW, all, host_ns), .doc = "their time on the host"},                  \
    [WORKS_ALL] = {"gpu_work_all", NULL, COLUMN_COUNT, MEMBER_OF(ROW, all, works),                 \
                   .doc = "work that they launched"},                                              \
    [GPU_ALL] = {"gpu_ns_all", "GPU, all", COLUMN_NS, 12, .spare = 1, .hides_zero = true,          \
                 MEMBER_OF(ROW, all, gpu_ns), .doc = "GPU time of that work"},                     \
    [BYTES_ALL] = {"bytes_all", NULL, COLUMN_BYTES, MEMBER_OF(ROW, all, bytes),                    \
                   .doc = "bytes that they copied or allocated"},                                  \
    [HITS] = {"samples", "hits", COLUMN_COUNT, 9, .spare = 2, .is_filled = true,                   \
              .hides_zero = true, MEMBER_OF(ROW, own, samples),                                    \
              .doc = "CPU samples (run --sample)"},                                                \
    [CPU] = {"cpu_ns", "CPU", COLUMN_NS, 11, .is_filled = true, .hides_zero = true,                \
             MEMBER_OF(ROW, own, cpu_ns), .doc = "CPU time, from samples"},                        \
    [PYTHON] = {"python_ns", "Python", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true, MEMBER_OF(ROW, own, time_ns[HOST_PYTHON]),                     \
                .doc = "the part of the CPU time in the Python interpreter"},                      \
    [NATIVE] = {"native_ns", "native", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true, MEMBER_OF(ROW, own, time_ns[HOST_NATIVE]),                     \
                .doc = "the part of the CPU time in native code"},                                 \
    [SYSTEM] = {"system_ns", "system", COLUMN_NS, 11, .spare = 1, .is_filled = true,               \
                .hides_zero = true, MEMBER_OF(ROW, own, time_ns[HOST_SYSTEM]),                     \
                .doc = "the part of the CPU time in the kernel"},                                  \
    [HITS_ALL] = {"samples_all", NULL, COLUMN_COUNT, MEMBER_OF(ROW, all, samples),                 \
                  .doc = "samples that this line led to"},                                         \
    [CPU_ALL] = {"cpu_ns_all", "CPU, all", COLUMN_NS, 11, .spare = 1, .is_filled = true,           \
                 .hides_zero = true, MEMBER_OF(ROW, all, cpu_ns),                                  \
                 .doc = "CPU time that this line led to"}
/* clang-format on */

/* For table.without: columns that appear only if samples were counted. */
#define SAMPLE_COLUMNS_BITS                                                                        \
    (1u << HITS | 1u << CPU | 1u << PYTHON | 1u << NATIVE | 1u << SYSTEM | 1u << HITS_ALL |        \
     1u << CPU_ALL)

struct cost_line {
    uint32_t at;   /* a call's node; or a Python frame or a range, 0: neither */
    bool borrowed; /* with --mine: frames of some calls were borrowed; for frame 0, all lines were
                      in libraries */
    const struct stack_cost *own;
    const struct stack_cost *all; /* NULL for calls */
};

struct stack_report {
    enum report_by by; /* BY_STACK, BY_PYTHON_LINE, or BY_SOURCE for source_report.h */
    bool is_mine;
    struct stack_costs costs;
    struct cost_line *rows; /* owned: calls or lines, the most expensive first */
    uint32_t count;
    struct line_cost *lines;   /* owned, by frame and whether it was borrowed */
    struct stack_cost without; /* of calls without a stack */
    struct stack_cost total;   /* of all, these included */
};

/* Prints why processes have no stacks or no Python frames. */
void stack_report_print_missing_reasons(const struct stack_report *r, bool with_python, FILE *out);

/* Prints a JSON member and a comma. */
void stack_cost_print_json(const char *key, const struct stack_cost *cost, FILE *out);

/* The tables' state is a struct stack_report; NULL or another --by means no table. */
extern const struct table_info stack_tables[2];

#endif
