/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are compared as one side, and the kernels of all of them. Memory: that of the runs,
 * RUNS_MAX at most.
 */
#ifndef GPUPROF_COLLECTOR_RUN_SET_H
#define GPUPROF_COLLECTOR_RUN_SET_H

#include "diff/rank_test.h"
#include "diff/run_summary.h"

#define RUNS_MAX RANKS_MAX

struct run_set {
    struct run_summary runs[RUNS_MAX]; /* without kernels */
    char *names[RUNS_MAX];             /* owned: where each comes from */
    uint32_t count;
    struct run_summary together; /* of this only `kernels`, and `steps`: of all runs with them */
};

void run_set_release(struct run_set *s);

/* Takes `run`, whose kernels become those of the set, and leaves nothing in it. 0,
 * GPUPROF_NO_MEMORY, or GPUPROF_LIMIT: there are RUNS_MAX. */
int run_set_add(struct run_set *s, struct run_summary *run, const char *name);

/* The metric of the runs that know it, in their order; how many these are. */
uint32_t run_set_gather(const struct run_set *s, enum run_metric m, double list[static RUNS_MAX]);

/* Steps of a run, of which one without has one. */
static inline uint64_t run_steps_of(const struct run_summary *run)
{
    return run->steps ? run->steps : 1;
}

#endif
