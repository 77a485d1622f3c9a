/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What to give up when gpuprof costs more than it may (formats/api/cost.h has the steps): decided
 * from what was measured in one window of time after another, and from nothing else.
 */
#ifndef GPUPROF_INJECT_LADDER_H
#define GPUPROF_INJECT_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"

#define LADDER_WINDOWS      2  /* over the budget one after another, before a step is taken */
#define LADDER_WINDOWS_LAST 10 /* ... before it is said that none helps, while some are left */
#define LADDER_NONE         -1 /* nothing is to be done */

/* One for each recording; all zero at first. */
struct ladder {
    uint32_t over_count; /* windows over the budget since the last step or the last one below it */
    uint32_t taken;      /* a bit for each step */
    bool is_at_bottom;   /* that was said */
};

/* Shares of a thread's time, in parts per million. */
struct ladder_window {
    uint64_t share; /* of the thread that gpuprof costs most */
    uint64_t budget;
    uint32_t possible; /* steps that would change something: a bit each */
    /* The most that each would save a thread that is over the budget; of CUPTI nobody knows. */
    uint64_t saves[LADDER_CODE_COUNT];
};

/*
 * The step to take now, LADDER_BOTTOM (once in a recording) if none is left that would save
 * anything, or LADDER_NONE. A step that would save nothing now is left for later; none is ever
 * taken back.
 */
int ladder_look(struct ladder *l, const struct ladder_window *w);

static inline bool ladder_has(const struct ladder *l, enum ladder_step step)
{
    return l->taken >> step & 1;
}

#endif
