/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A comparison on paper: text for people, JUnit for what shows tests, JSON for programs. What comes
 * from recordings is cleaned of what a terminal or a browser would obey. A printer returns 0 or
 * GPUPROF_NO_MEMORY.
 */
#ifndef GPUPROF_COLLECTOR_DIFF_PRINT_H
#define GPUPROF_COLLECTOR_DIFF_PRINT_H

#include <stdio.h>

#include "diff/comparison.h"
#include "diff/kernel_match.h"

/* `kernels` explain it. */
typedef int diff_print_fn(const struct comparison *c, const struct kernel_match *kernels,
                          FILE *out);
diff_print_fn diff_print_text, diff_print_junit, diff_print_json;

#define CHANGE_CELL_BYTES 48

/* A row of the table of metrics, as all of these but JSON have it; "" where nothing is known, and,
 * of runs that cannot be compared, of what compares them. */
struct change_cells {
    char sides[2][CHANGE_CELL_BYTES]; /* medians, of comparison.sides */
    char shift[CHANGE_CELL_BYTES];
    char interval[CHANGE_CELL_BYTES];
    char smallest[CHANGE_CELL_BYTES]; /* that would have been seen */
    char verdict[CHANGE_CELL_BYTES];
};
void change_cells_make(struct change_cells *cells, const struct comparison *c, enum run_metric m);

/* Time that something adds to a step: "+12.345 us". */
void change_put_ns(char text[CHANGE_CELL_BYTES], double ns);

/* What the metric is called, of runs with or without steps. */
const char *diff_metric_text(const struct comparison *c, enum run_metric m);

/* "a step", or, where no run or those of one side alone have steps, "a run". */
const char *diff_per_what(const struct comparison *c);

static inline bool diff_compares(const struct comparison *c)
{
    return c->result != RESULT_NOT_COMPARABLE;
}

/* What came of it in one sentence; returns `text`. */
#define HEADLINE_BYTES 1024
const char *diff_headline(const struct comparison *c, char text[HEADLINE_BYTES]);

/* What a change of that metric is a share of, if not of the metric itself; or NULL. */
const char *diff_change_of(const struct comparison *c, enum run_metric m);

/* What a change is, if it need not be that of the two sides' medians: lines; returns `text`. */
const char *diff_change_text(const struct comparison *c, char text[HEADLINE_BYTES]);

#endif
