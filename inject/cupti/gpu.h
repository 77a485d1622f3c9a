/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU's part of a recording: CUPTI's activity records and callbacks. It starts once, when CUDA
 * is initialized and a recording has begun, and never again in the child of a fork. Any CUPTI error
 * ends it, with a reason that is reported once and stored; host calls are still recorded.
 */
#ifndef GPUPROF_INJECT_GPU_H
#define GPUPROF_INJECT_GPU_H

#include <stdbool.h>
#include <stdint.h>

/* Called by the constructor: makes the driver load this library. */
void gpu_load(void);

/* Called by the hook of cuInit after it succeeded, without the driver's locks. */
void gpu_cuda_runs(void);

/* The driver has loaded us because of CUDA_INJECTION64_PATH, and no hook saw cuInit: the program's
 * calls bypass the hooks, and callbacks must show the first of them, too. */
void gpu_watch(void);

/*
 * A thread begins to take part in a recording. Called on that thread, inside a call. `may_wait`:
 * CUDA is not active on this thread, so it can wait (at most a second) for the thread that starts
 * CUPTI, and no launch is missed.
 */
void gpu_recording_runs(bool may_wait);

/* Drains as far as possible; after that no more device records are stored. */
void gpu_end(uint64_t ns);

/* A signal that the process raised is about to end it; see feature.h. */
void gpu_dies(bool is_certain, uint64_t ns);

/* A context is about to be destroyed, with the records that CUPTI still holds of it. */
void gpu_context_goes(void);

/* Are there callbacks that --overhead-max could turn off? */
bool gpu_has_callbacks(void);

/* Call it in the child of a fork, where CUPTI no longer works if the parent used it. */
void gpu_forget(void);

/* Adapts the enabled kinds to what is to be recorded, and turns callbacks and CUPTI off when
 * requested. */
void gpu_turn(void);

#endif
