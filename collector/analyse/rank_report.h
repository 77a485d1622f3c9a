/* SPDX-License-Identifier: Apache-2.0 */
/* One row for each rank of a job: its steps, the time of its devices, and how often the others
 * waited for it. Memory: 350 bytes a process. */
#ifndef GPUPROF_COLLECTOR_RANK_REPORT_H
#define GPUPROF_COLLECTOR_RANK_REPORT_H

#include "analyse/idle.h"
#include "resolve/steps.h"
#include "table/table.h"

struct rank_row {
    const struct process *process;
    uint32_t devices;
    uint64_t steps; /* complete steps */
    uint64_t step_ns;
    struct idle_device all;       /* the sum of its devices */
    uint64_t run_idle_ns, run_ns; /* idle and total time, without start-up and unrecorded time */
};

struct rank_report {
    struct rank_row *rows; /* owned; by rank, then process */
    uint32_t count;
    uint64_t missed[RANK_MISSES]; /* collectives, by reason; see idle_ranks.h */
    uint32_t left_out;            /* ranks outside the selection */
};

/* Makes the rows of processes with a rank, with their whole steps. `steps` and `idle`, finished,
 * may be NULL. */
void rank_report_make(struct rank_report *r, const struct recording *rec, const struct steps *steps,
                      const struct idle *idle);
void rank_report_release(struct rank_report *r);

/* The table's state is a struct rank_report. */
extern const struct table_info ranks_table;

#endif
