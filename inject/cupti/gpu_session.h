/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A CUPTI session lasts while any activity kind is enabled. According to the notes on 13.1 update
 * 1, CUPTI 13.0 and the first 13.1 give the work of cudaGraphLaunch wrong correlation ids in every
 * session except the first; no GPU has confirmed it yet. With these versions, if ours is a later
 * session (after a pause or another client's), graph work is not correlated with its launch, and
 * the report says so. A pause disables the kinds of work. If they stayed on, unwanted records would
 * have to be recognized by ids, in a race with threads that launch. With the simulated CUPTI that
 * lost 1 to 5 of 17,000 launches, for a reason not found. Kinds of memory stay on; until a GPU
 * shows that CUPTI counts this as one session, what follows counts as another.
 */
#ifndef GPUPROF_INJECT_GPU_SESSION_H
#define GPUPROF_INJECT_GPU_SESSION_H

#include <stdbool.h>
#include <stdint.h>

/* Our kinds are about to be enabled or disabled. Returns true if graphs are not correlated from now
 * on. */
bool gpu_session_changes(bool enable);

/* Is graph work that began at that tick not correlated with its call? And work that begins now? */
bool gpu_session_unties(uint64_t begin);
bool gpu_session_is_limited(void);

/* Would graphs no longer be correlated in a session after this one? Then it lasts, even between the
 * windows of a schedule. */
bool gpu_session_is_precious(void);

#endif
