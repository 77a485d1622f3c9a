/* SPDX-License-Identifier: Apache-2.0 */
#include "host/sample_ring.h"

#include <stdatomic.h>
#include <string.h>

#include "base/pages.h"

#define HEAD_BYTES 8u
#define IS_FILLER  1u /* flag in an entry's length: it only fills the end of the ring */

/* An entry begins with its length, which is 0 until the entry is complete: the reader leaves zeros
 * behind. Positions only grow; RING_BYTES is a power of two. */
static struct {
    uint8_t *bytes;
    _Atomic uint64_t head; /* where the next entry begins; changed by writers */
    _Atomic uint64_t tail; /* where the oldest entry begins; changed by the reader */
} ring;

static _Atomic uint64_t *length_at(uint64_t position)
{
    return (_Atomic uint64_t *)(void *)(ring.bytes + position % RING_BYTES);
}

bool sample_ring_create(void)
{
    if (!ring.bytes)
        ring.bytes = pages_map(RING_BYTES);
    return ring.bytes != NULL;
}

void *sample_ring_begin(uint32_t bytes)
{
    uint64_t head = atomic_load_explicit(&ring.head, memory_order_relaxed), skip, all;
    do {
        all = HEAD_BYTES + (uint64_t)bytes;
        skip = head % RING_BYTES + all > RING_BYTES ? RING_BYTES - head % RING_BYTES : 0;
        if (head + skip + all - atomic_load_explicit(&ring.tail, memory_order_acquire) > RING_BYTES)
            return NULL;
    } while (!atomic_compare_exchange_weak(&ring.head, &head, head + skip + all));
    if (skip)
        atomic_store_explicit(length_at(head), skip | IS_FILLER, memory_order_release);
    return ring.bytes + (head + skip) % RING_BYTES + HEAD_BYTES;
}

void sample_ring_end(void *room, uint32_t bytes)
{
    atomic_store_explicit((_Atomic uint64_t *)(void *)((uint8_t *)room - HEAD_BYTES),
                          HEAD_BYTES + (uint64_t)bytes, memory_order_release);
}

const void *sample_ring_next(void)
{
    uint64_t length =
        ring.bytes ? atomic_load_explicit(length_at(ring.tail), memory_order_acquire) : 0;
    if (length & IS_FILLER) {
        sample_ring_drop();
        length = atomic_load_explicit(length_at(ring.tail), memory_order_acquire);
    }
    return length ? ring.bytes + ring.tail % RING_BYTES + HEAD_BYTES : NULL;
}

void sample_ring_drop(void)
{
    uint64_t length =
        atomic_load_explicit(length_at(ring.tail), memory_order_acquire) & ~(uint64_t)IS_FILLER;
    memset(ring.bytes + ring.tail % RING_BYTES, 0, length);
    atomic_store_explicit(&ring.tail, ring.tail + length, memory_order_release);
}

void sample_ring_forget(void)
{
    if (ring.bytes && madvise(ring.bytes, RING_BYTES, MADV_DONTNEED) < 0)
        memset(ring.bytes, 0, RING_BYTES);
    atomic_store(&ring.head, 0);
    atomic_store(&ring.tail, 0);
}
