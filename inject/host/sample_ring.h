/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of RING_BYTES into which signal handlers put entries of any size, on any thread, for a
 * thread of ours that makes records of them. Without locks: an incomplete entry delays the reader,
 * but no writer. The entries of one thread stay in order.
 */
#ifndef GPUPROF_INJECT_SAMPLE_RING_H
#define GPUPROF_INJECT_SAMPLE_RING_H

#include <stdbool.h>
#include <stdint.h>

/* Pages are touched as it fills. Enough for half a minute of imports before a recording. */
#define RING_BYTES (4u << 20)

/* Returns false if there is no memory. Call it while there is one thread. */
bool sample_ring_create(void);

/*
 * Reserves `bytes`, a multiple of 8, aligned as a word; NULL: the ring is full. Async-signal-safe.
 */
void *sample_ring_begin(uint32_t bytes);

/* The reserved space is filled: the reader may see it. */
void sample_ring_end(void *room, uint32_t bytes);

/* Returns the oldest complete entry, or NULL. It stays until sample_ring_drop. One reader at a
 * time. */
const void *sample_ring_next(void);
void sample_ring_drop(void);

/* Call it in the child of a fork: the entries belong to the parent. */
void sample_ring_forget(void);

#endif
