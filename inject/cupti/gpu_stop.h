/* SPDX-License-Identifier: Apache-2.0 */
/* The ends of the device's records before that of the process. */
#ifndef GPUPROF_INJECT_GPU_STOP_H
#define GPUPROF_INJECT_GPU_STOP_H

/* Ends it; the first reason holds. CUPTI is left to others: no kinds, no callbacks, no subscriber.
 * Not from a callback of CUPTI's buffers or clock. */
__attribute__((format(printf, 1, 2))) void gpu_fail(const char *format, ...);

/*
 * No call is seen by a callback any more: first those that had begun end, then, at the second call,
 * CUPTI is told. And: nothing is recorded of the device from here on. On the flusher's thread.
 */
void gpu_stop_callbacks(void);
void gpu_stop_records(void);

#endif
