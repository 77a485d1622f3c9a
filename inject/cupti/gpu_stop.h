/* SPDX-License-Identifier: Apache-2.0 */
/* Ends the recording of device records before the process ends. */
#ifndef GPUPROF_INJECT_GPU_STOP_H
#define GPUPROF_INJECT_GPU_STOP_H

/* Ends it; the first reason is kept. CUPTI is left to others: no kinds, callbacks or subscriber
 * remain. Do not call it from CUPTI's buffer or clock callbacks. */
__attribute__((format(printf, 1, 2))) void gpu_fail(const char *format, ...);

/* Callbacks show no more calls: the first call of this lets open calls end, the second one disables
 * the callbacks in CUPTI. And: no more device records from here on. Both on the flushing thread. */
void gpu_stop_callbacks(void);
void gpu_stop_records(void);

#endif
