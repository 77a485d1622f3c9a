/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What signal handlers put aside, for a thread of ours that turns it into records: entries of any
 * size, by any thread, in a ring of RING_BYTES. No lock; an entry that is not complete holds up
 * the reader, and no writer. Each thread's own entries stay in their order.
 */
#ifndef GPUPROF_INJECT_SAMPLE_RING_H
#define GPUPROF_INJECT_SAMPLE_RING_H

#include <stdbool.h>
#include <stdint.h>

/* Touched as it fills: half a minute of imports before a recording. */
#define RING_BYTES (4u << 20)

/* False: no memory. While there is one thread. */
bool sample_ring_create(void);

/* `bytes` of room, a multiple of 8, aligned as a word; NULL: the ring is full. Async-signal-safe.
 */
void *sample_ring_begin(uint32_t bytes);

/* That room, of as many bytes, is filled: the reader may see it. */
void sample_ring_end(void *room, uint32_t bytes);

/*
 * The oldest entry, complete, or NULL: there is none yet. It stays until sample_ring_drop. One
 * reader at a time.
 */
const void *sample_ring_next(void);
void sample_ring_drop(void);

/* In the child of a fork: what there is belongs to the parent. */
void sample_ring_forget(void);

#endif
