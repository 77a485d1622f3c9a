/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_buffers.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

#include "futex.h"
#include "gpu.h"
#include "state.h"
#include "ticks.h"

/*
 * CUPTI keeps a buffer until all that is in it has completed. While the device always has work,
 * that is not before it is full: so one that is slow to fill is what a kill loses. CUPTI's advice
 * is 1 to 10 MB, its older samples have 32 KB; we give out what fills in SOON_NS to LATE_NS.
 */
#define BUFFER_BYTES     (256u << 10)
#define BUFFER_BYTES_MIN (32u << 10)
#define BUFFERS_MAX      16384
#define SOON_NS          30000000u
#define LATE_NS          120000000u
#define RECORD_BYTES     256 /* none is larger: at least so many were in it */
#define SPARES           64  /* beyond the cap, for a libcupti that takes no refusal */

#define REFUSAL_VERSION 27 /* an older libcupti crashes if it gets no buffer */

enum buffer_state { BUFFER_FREE, BUFFER_OUT };

struct entry {
    _Atomic uint32_t state; /* enum buffer_state */
    _Atomic uint32_t next;  /* in the list of filled ones: index + 1 */
    uint64_t valid_bytes;   /* written by the completed callback */
    CUcontext context;
    uint32_t stream;
};

static struct {
    uint8_t *base;
    uint32_t count;          /* without the spares, which come behind */
    _Atomic uint32_t newest; /* filled ones, the newest first: index + 1 */
    uint32_t oldest;         /* the parser's: the same turned round */
    _Atomic uint32_t bytes;  /* of the next one */
    _Atomic uint64_t asked_ns;
    struct entry entries[BUFFERS_MAX + SPARES];
} pool;

_Atomic uint32_t gpu_buffers_filled;

bool gpu_buffers_create(uint64_t bytes_max)
{
    uint64_t count = bytes_max / BUFFER_BYTES;
    pool.count = count < 2 ? 2 : count > BUFFERS_MAX ? BUFFERS_MAX : (uint32_t)count;
    /* Storage comes with the first touch; what was never needed costs nothing. */
    void *base = mmap(NULL, (size_t)(pool.count + SPARES) * BUFFER_BYTES, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    pool.base = base;
    atomic_store(&pool.bytes, BUFFER_BYTES_MIN);
    return true;
}

static uint8_t *data_of(uint32_t index)
{
    return pool.base + (size_t)index * BUFFER_BYTES;
}

/* A free one of [first, first + count), or -1. The lowest are taken first: they are mapped. */
static int take_free(uint32_t first, uint32_t count)
{
    for (uint32_t i = first; i < first + count; i++) {
        uint32_t state = BUFFER_FREE;
        if (atomic_load_explicit(&pool.entries[i].state, memory_order_relaxed) == BUFFER_FREE &&
            atomic_compare_exchange_strong(&pool.entries[i].state, &state, BUFFER_OUT))
            return (int)i;
    }
    return -1;
}

/* The last one is full, or has come back: was that soon or late? */
static uint32_t bytes_wanted(void)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t ns = now_ns - atomic_exchange_explicit(&pool.asked_ns, now_ns, memory_order_relaxed);
    uint32_t bytes = atomic_load_explicit(&pool.bytes, memory_order_relaxed);
    if (ns < SOON_NS && bytes < BUFFER_BYTES)
        bytes *= 2;
    else if (ns > LATE_NS && bytes > BUFFER_BYTES_MIN)
        bytes /= 2;
    atomic_store_explicit(&pool.bytes, bytes, memory_order_relaxed);
    return bytes;
}

void gpu_buffers_requested(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    int index = take_free(0, pool.count);
    if (index < 0 && gpu.cupti.version < REFUSAL_VERSION)
        index = take_free(pool.count, SPARES - 1);
    if (index < 0 && gpu.cupti.version >= REFUSAL_VERSION) {
        *buffer = NULL; /* then it drops, and counts */
        *size = *record_count_max = 0;
        return;
    }
    /* All are out: requests then share the last one, whose records nobody will read. */
    *buffer = data_of(index < 0 ? pool.count + SPARES - 1 : (uint32_t)index);
    *size = bytes_wanted();
    *record_count_max = 0; /* as many as fit */
}

bool gpu_buffers_has(const uint8_t *buffer)
{
    return pool.base && buffer >= pool.base &&
           (size_t)(buffer - pool.base) / BUFFER_BYTES < pool.count + SPARES;
}

void gpu_buffers_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid_bytes)
{
    uint32_t index = (uint32_t)((size_t)(buffer - pool.base) / BUFFER_BYTES);
    struct entry *e = &pool.entries[index];
    (void)size;
    if (index == pool.count + SPARES - 1) { /* perhaps shared, so never looked into */
        counter_add(COUNTER_GPU_DROPPED, (valid_bytes + RECORD_BYTES - 1) / RECORD_BYTES);
        return;
    }
    e->valid_bytes = valid_bytes;
    e->context = context;
    e->stream = stream;
    if (!valid_bytes) {
        atomic_store(&e->state, BUFFER_FREE);
        return;
    }
    uint32_t newest = atomic_load(&pool.newest);
    do
        atomic_store_explicit(&e->next, newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&pool.newest, &newest, index + 1));
    atomic_fetch_add(&gpu_buffers_filled, 1);
    futex_wake_all(&gpu_buffers_filled);
}

/* The list of filled ones is a stack; the parser takes all of it and turns it round. */
static void turn_round(void)
{
    uint32_t at = atomic_exchange(&pool.newest, 0);
    while (at) {
        struct entry *e = &pool.entries[at - 1];
        uint32_t next = atomic_load_explicit(&e->next, memory_order_relaxed);
        atomic_store_explicit(&e->next, pool.oldest, memory_order_relaxed);
        pool.oldest = at;
        at = next;
    }
}

bool gpu_buffers_take(struct gpu_buffer *buffer)
{
    if (!pool.oldest)
        turn_round();
    if (!pool.oldest)
        return false;
    uint32_t index = pool.oldest - 1;
    struct entry *e = &pool.entries[index];
    pool.oldest = atomic_load_explicit(&e->next, memory_order_relaxed);
    *buffer = (struct gpu_buffer){.data = data_of(index),
                                  .valid_bytes = e->valid_bytes,
                                  .context = e->context,
                                  .stream = e->stream,
                                  .is_spare = index >= pool.count};
    return true;
}

void gpu_buffers_release(const struct gpu_buffer *buffer)
{
    uint32_t index = (uint32_t)((size_t)(buffer->data - pool.base) / BUFFER_BYTES);
    /* Here, not in CUPTI, which would do it on the program's thread. */
    memset(buffer->data, 0, buffer->valid_bytes);
    atomic_store(&pool.entries[index].state, BUFFER_FREE);
}
