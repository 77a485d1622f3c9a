/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The buffers into which CUPTI writes activity records: a pool of limited size in one mapping.
 * Buffers are handed out zeroed and come back filled. CUPTI calls the two callbacks with its lock
 * held: they take no lock, do not call CUPTI, and do not wait.
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
    bool is_spare; /* handed out while the pool was empty: its records are counted, not recorded */
};

/* Creates the pool. Returns false with errno set if there is no memory. */
bool gpu_buffers_create(uint64_t bytes_max);

void gpu_buffers_requested(uint8_t **buffer, size_t *size, size_t *record_count_max);
/* `buffer` must be one of ours. */
void gpu_buffers_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid_bytes);

/* Is this one of our buffers? */
bool gpu_buffers_has(const uint8_t *buffer);

/* Takes the oldest filled buffer; false: there is none. Only on the parser's thread. */
bool gpu_buffers_take(struct gpu_buffer *buffer);

/* Clears the buffer and makes it free again. Only on the parser's thread. */
void gpu_buffers_release(const struct gpu_buffer *buffer);

/* A futex word, incremented for each filled buffer. */
extern _Atomic uint32_t gpu_buffers_filled;

#endif
