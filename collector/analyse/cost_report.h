/* SPDX-License-Identifier: Apache-2.0 */
/* Reports gpuprof's own cost, for all processes together. */
#ifndef GPUPROF_COLLECTOR_COST_REPORT_H
#define GPUPROF_COLLECTOR_COST_REPORT_H

#include <stdio.h>

#include "read/recording.h"
#include "table/table.h"

struct step_taken {
    const struct process *process;
    const struct step_down *step;
};

/* Sums over all processes, with views of the recording. */
struct cost_report {
    struct cost_row rows[COST_COUNT];
    uint64_t sum[COST_SUM_ARG_COUNT]; /* enum cost_sum_argument; not those of the worst thread */
    struct step_taken *steps;         /* owned */
    uint32_t step_count;
    uint32_t process_count;
    bool is_blind; /* nothing was measured in the program's threads, although calls were recorded */
    const struct process
        *worst; /* process of the thread with the largest share; NULL: nothing was measured */
};

/* The overhead in the program's threads as a share of their time; and the time of gpuprof's own
 * threads as a share of one processor's. */
double cost_of_threads(const struct cost_report *c);
double cost_of_processor(const struct cost_report *c);

/* Is most of the cost extrapolated from few calls, so that it may be far lower? */
bool cost_is_rough(const struct cost_report *c);

/* Call it when everything is read; `steps` is the caller's to free. */
void cost_report_init(struct cost_report *c, const struct recording *rec);

/* The classes, and what was given up; both are in "own_cost". The source is a struct cost_report.
 * Text and csv omit a cost that was not measured (old or very short recordings). */
extern const struct table_info cost_tables[2];

#endif
