/* SPDX-License-Identifier: Apache-2.0 */
/* What gpuprof itself has cost, on paper: all processes of a report together. */
#ifndef GPUPROF_COLLECTOR_COST_REPORT_H
#define GPUPROF_COLLECTOR_COST_REPORT_H

#include <stdio.h>

#include "read/recording.h"
#include "resolve/steps.h"
#include "table/screen.h"
#include "table/table.h"

struct step_taken {
    const struct process *process;
    const struct step_down *step;
};

/* Of all processes; views of the recording. */
struct cost_report {
    struct cost_row rows[COST_COUNT];
    uint64_t threads;
    uint64_t wall_ns; /* of these threads */
    uint64_t cost_ns;
    uint64_t own_ns;
    uint64_t span_ns;         /* of the recordings, added up */
    struct step_taken *steps; /* owned */
    uint32_t step_count;
    uint32_t process_count;
    bool is_blind; /* nothing was measured in the program's threads, though something was done */
    const struct process *worst; /* that has the thread which paid most; NULL: none was measured */
};

/* Is most of the cost known of so few calls, the threads' first, that it may be far lower? */
bool cost_is_rough(const struct cost_report *c);

/* After all was read. 0 or GPUPROF_NO_MEMORY. */
int cost_report_init(struct cost_report *c, const struct recording *rec);
void cost_report_release(struct cost_report *c);

/* What the thread that paid most paid in all, as a share of its process's steps: what it paid
 * before and behind them is in it, so that it is at most that. Of the process with the largest; 0:
 * there are no steps, or they are most of its time. */
double cost_of_steps(const struct recording *rec, const struct steps *steps);

/* Of a struct cost_report: the classes, and what was given up. Together they are the member
 * "own_cost". In the text and csv nothing where it was not measured, as in older recordings and
 * those of a moment. */
extern const struct table_info cost_tables[2];

/* A line of the first screen, if anything was given up. */
void cost_report_print_given_up(const struct recording *rec, struct screen *s);

#endif
