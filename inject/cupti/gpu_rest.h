/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns CUPTI's callbacks off while recording is stopped: each would cost a launch half a
 * microsecond for nothing. When it has been stopped for GPU_REST_NS they are off, except for calls
 * that are always recorded (call_always_goes_on). They are on again before the next call is
 * recorded.
 */
#ifndef GPUPROF_INJECT_GPU_REST_H
#define GPUPROF_INJECT_GPU_REST_H

#define GPU_REST_NS 1000000000u

/* Called regularly by the flushing thread: turns them off when that is due. */
void gpu_rest_look(void);

/* Something is to be recorded: turns the callbacks on, if needed, before it returns. */
void gpu_rest_turn(void);

#endif
