/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report's table of stacks (--by=stack), or of the lines of Python that made the calls
 * (--by=python-line). A row of stacks is a call and who made it, in all processes. A call counts
 * for the line of its innermost Python frame, as "own", and once for each line above, as "all";
 * without Python frames for the range that was open around it in a Python process, or for none.
 * With --mine a line of a library is none: a call counts for the innermost line of the user's own
 * (own_line.h), whichever thread the frames were borrowed from.
 */
#ifndef GPUPROF_COLLECTOR_STACK_REPORT_H
#define GPUPROF_COLLECTOR_STACK_REPORT_H

#include <stdio.h>

#include "resolve/stack_costs.h"
#include "table/table.h"

#define STACK_ROWS_SHOWN_MAX   40 /* in the text; the other forms have all */
#define STACK_FRAMES_SHOWN_MAX 64 /* of a row of the text */
#define STACK_SAMPLES_NOTE                                                                         \
    "CPU time is estimated from samples (hits), in the interpreter (Python), in native code, and " \
    "in "                                                                                          \
    "the\nkernel (system)\n"

struct line_row {
    uint32_t frame; /* a Python frame or a range; 0: neither */
    bool borrowed;  /* with --mine: some calls were; of no frame: all lines were of libraries */
    uint32_t stamp; /* the last node that was counted for it */
    struct stack_cost own;
    struct stack_cost all;
};

struct stack_report {
    enum report_by by; /* BY_STACK, BY_PYTHON_LINE or BY_SOURCE, which goes on from here */
    bool is_mine;
    struct stack_costs costs;
    uint32_t *stacks; /* owned: nodes of calls, the most expensive first */
    uint32_t stack_count;
    struct line_row *lines; /* owned, likewise */
    uint32_t line_count;
    struct stack_cost without; /* of calls without a stack */
    struct stack_cost total;   /* of all, these included */
};

/* Why processes have no stacks, or no Python frames. */
void stack_report_print_absences(const struct stack_report *r, bool with_python, FILE *out);

/* Of a struct stack_report; NULL, or made --by another thing: not there. (stack_report_print.c) */
extern const struct table_info stack_tables[2];

#endif
