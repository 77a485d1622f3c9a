/* SPDX-License-Identifier: Apache-2.0 */
/* For each step, the process that its own process waited for longest in it, as analyse/idle.h knows
 * it (struct step). */
#ifndef GPUPROF_COLLECTOR_STEP_WAITS_H
#define GPUPROF_COLLECTOR_STEP_WAITS_H

#include "analyse/idle.h"
#include "resolve/steps.h"

#define STEP_WAIT_NS 1000u /* shorter waits stay out of the text: clocks agree no better */

/* Finds which process each step waited for. `idle`, finished, may be NULL. 0 or an error. */
int step_waits_find(struct steps *steps, struct idle *idle);

/* The step with the same number of the process that `step` waited for; NULL if there is none. */
const struct step *step_awaited(const struct steps *steps, const struct step *step);

/* True if `step` was within a hundredth as long as the one that it waited for. Reports then name
 * that one, which waited less itself. */
bool step_has_only_waited(const struct steps *steps, const struct step *step);

/* "rank 1, 20.000 ms" in new memory; NULL if the wait is below STEP_WAIT_NS, or out of memory. */
char *step_wait_text(const struct step *step);

#endif
