/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen of a report, and the summary at the end of a run. It says whether the device
 * works, if not why not, and what to try first. All figures come from the tables and from idle.h,
 * findings.h and steps.h; only the median of the steps is computed here.
 */
#ifndef GPUPROF_COLLECTOR_OVERVIEW_H
#define GPUPROF_COLLECTOR_OVERVIEW_H

#include "read/recording.h"
#include "report/report.h"
#include "resolve/steps.h"
#include "table/screen.h"

#define OVERVIEW_LINES_MAX 24 /* of the first screen */

struct overview {
    const struct report *report;
    const char *program;  /* command line of the first process as recorded; NULL: not known */
    uint32_t ranks;       /* in all jobs; several processes may share a rank, or have none */
    uint32_t devices;     /* that did work; each counts once if its UUID is known */
    uint32_t workless;    /* processes that launched work but have no record of it */
    const char *device;   /* name of the first device; NULL: not known */
    uint64_t windows;     /* highest number of windows in a process; 0: everything was recorded */
    const char *schedule; /* the schedule of the first process that followed one, or NULL */
    const struct steps *marks;
    uint32_t steps; /* complete steps of all processes */
    uint64_t step_median_ns;
    const struct step *slowest; /* NULL: there are no steps */
};

/* Fills *o with views of `r`. */
void overview_init(struct overview *o, const struct report *r);

/* Returns whether missing ranks of a job are reported. If it is not sure that they are missing,
 * only for a job that communicates. */
bool overview_has_missing(const struct report *r, const struct missing_ranks *m);

/* Returns "ranks 2, 5-7 of 8 have no file" and the consequence, in new memory; NULL: no rank is
 * missing. (overview_print.c, as the next two) */
char *overview_missing_text(const struct report *r);

/* Says what ended the start-up. */
const char *overview_start_up_end(const struct overview *o);

/* Returns how many of losses.gpu_missing belong to processes that hang: CUPTI has their records and
 * does not deliver them. */
uint64_t overview_held_back(const struct report *r);

/* Returns the wall time before the first GPU work or, if there is none, before the first call, as
 * far as it was recorded. 0 for a selection of time. */
uint64_t overview_start_up_ns(const struct report *r);

/* The overhead of the busiest thread as a share of its process's steps, for the process with the
 * largest. It is an upper bound: overhead outside steps counts. 0: no steps, they fill its life, or
 * there is a selection. */
double overview_cost_of_steps(const struct report *r);

/* Print the first screen, OVERVIEW_LINES_MAX lines of how->width columns at most (0: of any width);
 * above tables that were asked for only what was recorded, and why GPU rows are missing; and the
 * summary, with `function_count` functions if no device is known. */
void overview_print(const struct overview *o, const struct table_view *how, FILE *out);
void overview_print_head(const struct overview *o, const struct table_view *how, FILE *out);
void overview_print_summary(const struct overview *o, unsigned function_count, bool has_colour,
                            FILE *out);

/* Lines of the screens above: what the devices did, and why GPU rows are missing in some or all
 * processes. */
void overview_print_devices(const struct overview *o, struct screen *s);
void overview_print_missing_reason(const struct report *r, struct screen *s);

static inline double overview_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Prints the member "overview", without a comma around it. (overview_json.c) */
void overview_print_json(const struct overview *o, FILE *out);

#endif
