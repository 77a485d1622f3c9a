/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what to turn off when gpuprof costs more than its budget (formats/api/cost.h lists the
 * steps). The decision depends only on what each window has measured. */
#ifndef GPUPROF_INJECT_LADDER_H
#define GPUPROF_INJECT_LADDER_H

#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"

#define LADDER_WINDOWS      2  /* windows above the budget in a row before a step is taken */
#define LADDER_WINDOWS_LAST 10 /* ... before it reports that no remaining step helps */
#define LADDER_NONE         -1 /* take no step */

/* One per recording; initially zero. */
struct ladder {
    /* windows above the budget since the last step, or since the last one below it */
    uint32_t over_count;
    uint32_t taken;    /* bit mask of steps */
    bool is_at_bottom; /* LADDER_BOTTOM was returned */
};

/* Shares of a thread's time, in parts per million. */
struct ladder_window {
    uint64_t share; /* largest share that gpuprof has of any thread's time */
    uint64_t budget;
    uint32_t possible; /* bit mask of the steps that would change something */
    /* The most that each step would save a thread that is above the budget; not known for CUPTI. */
    uint64_t saves[LADDER_CODE_COUNT];
};

/*
 * Returns the step to take now, LADDER_NONE, or LADDER_BOTTOM (once per recording) if no remaining
 * step would save anything. A step that would save nothing now may be taken later; no step is ever
 * undone.
 */
int ladder_look(struct ladder *l, const struct ladder_window *w);

static inline bool ladder_has(const struct ladder *l, enum ladder_step step)
{
    return l->taken >> step & 1;
}

#endif
