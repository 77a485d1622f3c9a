/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CUPTI's callbacks while recording is stopped: each costs a launch half a microsecond, for
 * nothing. When it has been stopped for GPU_REST_NS they are off, but for those of calls that are
 * recorded all the same (call_always_goes_on), and on again before the next call is recorded.
 */
#ifndef GPUPROF_INJECT_GPU_REST_H
#define GPUPROF_INJECT_GPU_REST_H

#define GPU_REST_NS 1000000000u

/* By the flusher, now and then: turns them off where that is due. */
void gpu_rest_look(void);

/* Something is asked for: turns them on where they are needed, before it returns. */
void gpu_rest_turn(void);

#endif
