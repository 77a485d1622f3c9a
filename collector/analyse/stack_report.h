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

#include "resolve/stack_costs.h"
#include "table/table.h"

#define STACK_ROWS_SHOWN_MAX   40 /* in the text; the other forms have all */
#define STACK_FRAMES_SHOWN_MAX 64 /* frames of a row of the text */
#define STACK_SAMPLES_NOTE                                                                         \
    "CPU time is estimated from samples (hits), in the interpreter (Python), in native code, and " \
    "in "                                                                                          \
    "the\nkernel (system)\n"

struct line_row {
    uint32_t frame; /* a Python frame or a range; 0: neither */
    bool borrowed;  /* with --mine: frames of some calls were borrowed; for frame 0, all lines were
                       in libraries */
    uint32_t stamp; /* the last node counted for it */
    struct stack_cost own;
    struct stack_cost all;
};

struct stack_report {
    enum report_by by; /* BY_STACK, BY_PYTHON_LINE, or BY_SOURCE for source_report.h */
    bool is_mine;
    struct stack_costs costs;
    uint32_t *stacks; /* owned: nodes of calls, the most expensive first */
    uint32_t stack_count;
    struct line_row *lines; /* owned, likewise */
    uint32_t line_count;
    struct stack_cost without; /* of calls without a stack */
    struct stack_cost total;   /* of all, these included */
};

/* Prints why processes have no stacks or no Python frames. */
void stack_report_print_missing_reasons(const struct stack_report *r, bool with_python, FILE *out);

/* The tables' state is a struct stack_report; NULL or another --by means no table.
 * (stack_report_print.c) */
extern const struct table_info stack_tables[2];

#endif
