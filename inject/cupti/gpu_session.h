/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A session of CUPTI's: from where kinds of records are enabled until none is. CUPTI 13.0 and the
 * first 13.1 give the work of cudaGraphLaunch wrong correlation ids in every session but the first.
 * (That is what the notes on 13.1 update 1 say; no GPU has shown it yet.) Where it is one of those,
 * and ours is a later one, after a pause or another client's, the work of graphs is not tied to its
 * launch, and that is said. A pause turns the kinds of work off: with them left on, what it makes
 * would have to be told by ids from what threads that race with it launch. Tried with the simulated
 * CUPTI, that lost 1 to 5 of 17,000 launches; why, and whether by its doing or ours, was not found.
 * Those of memory stay on; as long as no GPU has shown that CUPTI takes that for one session, what
 * comes after it counts as another.
 */
#ifndef GPUPROF_INJECT_GPU_SESSION_H
#define GPUPROF_INJECT_GPU_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Our kinds are about to be enabled or disabled. True: from now on graphs are not tied. */
bool gpu_session_changes(bool enable);

/* Is the work of graphs that began at that tick not tied to its call? And of any that begins now?
 */
bool gpu_session_unties(uint64_t begin);
bool gpu_session_is_limited(void);

/* Had another one than this to begin, its graphs would not be tied? Between the windows of a
 * schedule it lasts. */
bool gpu_session_is_precious(void);

#endif
