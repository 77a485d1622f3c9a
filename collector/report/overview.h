/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first screen of a report, and the summary at the end of a run: one look says whether the
 * device works, if not why not, and what to try first. All figures are those of the tables, and of
 * idle.h, findings.h and steps.h; nothing is computed anew here but the middle of the steps.
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
    const char *program; /* the first process's command line, as it was recorded; NULL: not known */
    uint32_t ranks;      /* of all jobs; processes may share one, or have none */
    uint32_t devices;    /* that did something: each once where its UUID is known */
    uint32_t workless;   /* processes that launched work, none of which is recorded */
    const char *device;  /* what the first of them is called; NULL: not known */
    uint64_t windows;    /* of the process with most of them; 0: none, all was recorded */
    const char *schedule; /* what the first process that followed one says of its steps, or NULL */
    const struct steps *marks;
    uint32_t steps; /* whole ones, of all processes */
    uint64_t step_median_ns;
    const struct step *slowest; /* NULL: there are no steps */
};

/* 0 or GPUPROF_NO_MEMORY. Views of `r`. */
int overview_init(struct overview *o, const struct report *r);

/* Of a job: is it said that ranks of it are not here? Where that is not sure, only if it
 * communicates. */
bool overview_has_missing(const struct report *r, const struct missing_ranks *m);

/* "ranks 2, 5-7 of 8 have no file", and what follows from it, in new memory; NULL: nothing is
 * to be said, or no memory. */
char *overview_missing_text(const struct report *r);

/* How much of the wall time was over before the first work of a device or, where there was none,
 * the first call, as far as it was recorded; 0 of a piece of time. */
uint64_t overview_start_up_ns(const struct report *r);

/* Until when that is: what ended it, in words. */
const char *overview_start_up_end(const struct overview *o);

/* cost_of_steps of all that was recorded; 0 of a piece of it, too. */
double overview_cost_of_steps(const struct report *r);

/* How many of losses.gpu_missing are of processes that hang: CUPTI has their work, and hands it
 * over no more. */
uint64_t overview_held_back(const struct report *r);

/* Prints at most OVERVIEW_LINES_MAX lines, of how->width columns each (0: of any width). */
void overview_print(const struct overview *o, const struct table_view *how, FILE *out);

/* What it was, and why the devices have no rows, for who asks for something else. */
void overview_print_head(const struct overview *o, const struct table_view *how, FILE *out);

/* Prints the summary, with that many functions where no device is known of. */
void overview_print_summary(const struct overview *o, unsigned function_count, bool has_colour,
                            FILE *out);

/* Of the screens above: what the devices did; why rows of devices are missing in some processes, or
 * all. (overview_gpu.c) */
void overview_print_devices(const struct overview *o, struct screen *s);
void overview_print_missing_reason(const struct report *r, struct screen *s);

static inline double overview_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Prints the member "overview", without a comma around it. (overview_json.c) */
void overview_print_json(const struct overview *o, FILE *out);

#endif
