/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row for each rank of a job: its steps, where its devices' time went, and how often the others
 * waited for it. Memory: 160 bytes a process.
 */
#ifndef GPUPROF_COLLECTOR_RANK_REPORT_H
#define GPUPROF_COLLECTOR_RANK_REPORT_H

#include "analyse/idle.h"
#include "resolve/steps.h"
#include "table/table.h"

struct rank_row {
    const struct process *process;
    uint32_t devices;
    uint64_t steps; /* whole ones */
    uint64_t step_ns;
    uint64_t window_ns; /* of its devices, and so the next ones */
    uint64_t parts[IDLE_PARTS];
    uint64_t stopped_ns;
    uint64_t idle_ns;
    uint64_t start_up_ns;         /* of idle_ns */
    uint64_t run_idle_ns, run_ns; /* idle, and all, without start-up and what was not recorded */
    uint64_t waits_ns;            /* of idle_ns: for other ranks */
    uint64_t collectives;         /* that another rank took part in, too */
    uint64_t late;                /* of these it was the last to begin */
    uint64_t late_ns;             /* behind the first one, added up */
    uint64_t awaited_ns;          /* for which other devices only waited for it */
};

struct rank_report {
    struct rank_row *rows; /* owned; by rank, then process */
    uint32_t count;
    uint64_t missed[RANK_MISSES]; /* collectives, as arrivals.h has them */
    uint32_t left_out;            /* ranks that nobody wanted to see */
};

/* A row for each process, by its index, with its whole steps; `steps` may be NULL. 0 or
 * GPUPROF_NO_MEMORY; rank_report_release in both cases. */
int rank_report_init(struct rank_report *r, const struct recording *rec, const struct steps *steps);

/* After that only those of processes that have a rank. `idle`, finished, may be NULL. */
void rank_report_make(struct rank_report *r, const struct recording *rec, const struct idle *idle);
void rank_report_release(struct rank_report *r);

/* Of a struct rank_report. */
extern const struct table_info ranks_table;

#endif
