/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whom the others waited for in a step: of a step the process that its own waited for longest in
 * it, as analyse/idle.h knows it. Of several devices of a process it is what the one that waited
 * longest has waited for. Memory: 24 bytes a step, if anybody waited.
 */
#ifndef GPUPROF_COLLECTOR_STEP_WAITS_H
#define GPUPROF_COLLECTOR_STEP_WAITS_H

#include "analyse/idle.h"

#define STEP_WAIT_NS 1000u /* text tells of no shorter one: clock readings agree no better */
#include "resolve/steps.h"

struct step_wait {
    const struct process *process; /* NULL: nobody was waited for */
    uint64_t ns;
    uint64_t all_ns; /* for whomever, of the device that waited longest */
};

/* For each step, in their order, in new memory; NULL in *waits: nobody waited. `idle`, finished,
 * may be NULL. 0 or an error. */
int step_waits_find(const struct steps *steps, struct idle *idle, struct step_wait **waits);

/* The step, of the same number, of the process that `step` of the list waited for; NULL: there is
 * none, or it waited for nobody. `waits` may be NULL. */
const struct step *step_awaited(const struct steps *steps, const struct step_wait *waits,
                                const struct step *step);

/* Is it only as long as the one that it waited for, within a hundredth? Then that one, which waited
 * less itself, is named in its place. */
bool step_has_only_waited(const struct steps *steps, const struct step_wait *waits,
                          const struct step *step);

/* "rank 1, 20.000 ms", in new memory; NULL: nobody for STEP_WAIT_NS, or no memory. */
char *step_wait_text(const struct step_wait *wait);

#endif
