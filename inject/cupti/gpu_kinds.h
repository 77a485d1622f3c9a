/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of CUPTI's records that are recorded (--kinds). */
#ifndef GPUPROF_INJECT_GPU_KINDS_H
#define GPUPROF_INJECT_GPU_KINDS_H

#include <stdbool.h>

/*
 * Enables and disables kinds until they are what is to be recorded now (recorded.h); who finds
 * another thread at it waits for that, a bounded time. False: of those that were to be enabled,
 * none could be. gpu_kinds_are_due: has anything been asked for that nobody has begun to follow?
 */
bool gpu_kinds_follow(void);
bool gpu_kinds_are_due(void);

/* CUPTI is given up: none is enabled any more. */
void gpu_kinds_end(void);

/* Says anew where the rows come from: something that limits them has changed. */
void gpu_tell_source(void);

#endif
