/* SPDX-License-Identifier: Apache-2.0 */
/*
 * This is another CUPTI client in this process, such as PyTorch's profiler, that takes the
 * records for a while without subscribing, by registering its own buffer callbacks. Meanwhile the
 * records are its; earlier ones are ours, and we continue after it. Since we started, only our pair
 * of callbacks is registered with CUPTI: it passes each buffer to its owner.
 */
#ifndef GPUPROF_INJECT_GPU_OTHER_CLIENT_H
#define GPUPROF_INJECT_GPU_OTHER_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/cupti_abi.h"

/* The buffer callbacks that CUPTI is given. */
void gpu_other_client_requested(uint8_t **buffer, size_t *size, size_t *record_count_max);
void gpu_other_client_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                                size_t valid_bytes);

/* The other client has the device records from here on, or no longer; changes what is recorded
 * (recorded.h). */
void gpu_other_client_has(bool has);

/* Has it enabled any kinds? */
bool gpu_other_client_is_at_work(void);

/* Calls of another client, as the process or as a subscriber whose subscription is ours. `real` is
 * the process's function. */
typedef int gpu_other_client_kind_fn(int kind);
typedef int gpu_other_client_attribute_fn(int attribute, size_t *bytes, void *value);
int gpu_other_client_enable(gpu_other_client_kind_fn *real, int kind);
int gpu_other_client_disable(gpu_other_client_kind_fn *real, int kind);
int gpu_other_client_set(gpu_other_client_attribute_fn *real, int attribute, size_t *bytes,
                         void *value);
int gpu_other_client_register_v2(CUpti_BuffersCallbackRequestFunc_v2 requested,
                                 CUpti_BuffersCallbackCompleteFunc_v2 completed);
/*
 * It unsubscribes: everything that it enabled as a subscriber ends, even if it did not disable it.
 */
void gpu_other_client_leaves(void);
/* It asks for something else that may disturb our records. */
void gpu_other_client_acts(void);

/* Called regularly by the flushing thread: takes the records back when the other client is done. */
void gpu_other_client_look(void);

#endif
