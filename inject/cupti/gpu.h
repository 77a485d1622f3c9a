/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The GPU's side of a recording: CUPTI's activity records and callbacks. Off until CUDA has been
 * initialised and a recording has begun, whichever comes later; then started once, never again in
 * the child of a fork. Any error of CUPTI's ends it with a reason that is said once and stored:
 * host calls are recorded all the same.
 */
#ifndef GPUPROF_INJECT_GPU_H
#define GPUPROF_INJECT_GPU_H

#include <stdbool.h>
#include <stdint.h>

/* By the constructor: the driver is told to load us. */
void gpu_load(void);

/* cuInit has succeeded: by its hook, with the driver's locks free. */
void gpu_cuda_runs(void);

/*
 * The driver has loaded us for CUDA_INJECTION64_PATH, and no hook saw the program initialise it:
 * the program's calls go past the hooks, and callbacks must show the first of them too.
 */
void gpu_watch(void);

/* A thread has begun to take part in a recording. Both on the program's thread, inside a call.
 * `may_wait`: CUDA is not at work on this thread, so it can wait for another one that starts CUPTI,
 * and what it is about to launch is not missed; for a second at most. */
void gpu_recording_runs(bool may_wait);

/* gpu_drain as far as it goes, and after it nothing more is recorded of the device. */
void gpu_end(uint64_t ns);

/* The process is about to be ended by a signal of its own; see feature.h. */
void gpu_dies(bool is_certain, uint64_t ns);

/* A context is about to go: with it what CUPTI still holds of it. */
void gpu_context_goes(void);

/* Are there callbacks that could be given up? */
bool gpu_has_callbacks(void);

/* In the child of a fork: CUPTI does not work there any more, if it did in the parent. */
void gpu_forget(void);

/* The kinds of records follow what is to be recorded; callbacks and CUPTI are given up, soon. */
void gpu_turn(void);

#endif
