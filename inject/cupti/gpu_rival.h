/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Another client of CUPTI's in this process, as PyTorch's profiler is: it takes the records for a
 * while without subscribing, by registering buffer callbacks of its own. While it does, the records
 * are its; what we had until then is ours, and we go on after it. One pair of callbacks is ever
 * registered with CUPTI from our start on: they tell by the owner of a buffer where it goes.
 */
#ifndef GPUPROF_INJECT_GPU_RIVAL_H
#define GPUPROF_INJECT_GPU_RIVAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/cupti_abi.h"

/* What CUPTI is given as buffer callbacks. */
void gpu_rival_requested(uint8_t **buffer, size_t *size, size_t *record_count_max);
void gpu_rival_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                         size_t valid_bytes);

/* It has the device's records from here on, or no more: asks for that (recorded.h). */
void gpu_rival_has(bool has);

/* It has kinds of records enabled. */
bool gpu_rival_is_at_work(void);

/* What another client calls, as the process or as a subscriber whose subscription is ours; `real`
 * is the process's function. */
typedef int gpu_rival_kind_fn(int kind);
typedef int gpu_rival_attribute_fn(int attribute, size_t *bytes, void *value);
int gpu_rival_enable(gpu_rival_kind_fn *real, int kind);
int gpu_rival_disable(gpu_rival_kind_fn *real, int kind);
int gpu_rival_set(gpu_rival_attribute_fn *real, int attribute, size_t *bytes, void *value);
int gpu_rival_register_v2(CUpti_BuffersCallbackRequestFunc_v2 requested,
                          CUpti_BuffersCallbackCompleteFunc_v2 completed);
/* It unsubscribes: what it has as a subscriber ends, though it did not say so of each kind. */
void gpu_rival_leaves(void);
/* It asks for something else that may disturb our records. */
void gpu_rival_acts(void);

/* Now and then, from the flushing thread: takes the records again when the other one is through. */
void gpu_rival_look(void);

#endif
