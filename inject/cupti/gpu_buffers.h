/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers that CUPTI writes activity records into: a capped pool in one mapping, handed out
 * empty (all zero) and given back filled. The two callbacks run under CUPTI's lock: they take no
 * lock, call nothing of CUPTI's and do not wait.
 */
#ifndef GPUPROF_INJECT_GPU_BUFFERS_H
#define GPUPROF_INJECT_GPU_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cupti/cupti_abi.h"

/* A filled buffer. */
struct gpu_buffer {
    uint8_t *data;
    size_t valid_bytes;
    CUcontext context;
    uint32_t stream;
    bool is_spare; /* given out when the pool was empty: to be counted, not recorded */
};

/* Makes the pool. False: no memory (errno). */
bool gpu_buffers_create(uint64_t bytes_max);

void gpu_buffers_requested(uint8_t **buffer, size_t *size, size_t *record_count_max);
/* `buffer` must be ours. */
void gpu_buffers_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid_bytes);

/* Is it one of ours? */
bool gpu_buffers_has(const uint8_t *buffer);

/* The oldest filled buffer; false if there is none. From the parser's thread only. */
bool gpu_buffers_take(struct gpu_buffer *buffer);

/* Empties it and makes it free again. From the parser's thread only. */
void gpu_buffers_release(const struct gpu_buffer *buffer);

/* Raised (futex) with each buffer that is filled. */
extern _Atomic uint32_t gpu_buffers_filled;

#endif
