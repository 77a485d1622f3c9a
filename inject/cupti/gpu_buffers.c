/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_buffers.h"

#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "cupti/gpu_state.h"
#include "record/state.h"

/*
 * CUPTI keeps a buffer until all work in it has completed. While the device is busy, that is when
 * the buffer is full. So a kill loses more if a buffer fills slowly. CUPTI recommends 1 to 10 MB,
 * its older samples use 32 KB; we hand out buffers that fill in SOON_NS to LATE_NS. Small and large
 * buffers share the memory in grains, one bit each.
 */
#define GRAIN_BYTES (32u << 10)
#define GRAINS_MAX  8 /* per buffer; a power of two */
#define WORD_GRAINS 64
#define WORD_BYTES  (WORD_GRAINS * GRAIN_BYTES)
#define WORDS_MAX   2048
/* beyond the limit, for versions of libcupti that crash if they get no buffer */
#define SPARE_WORDS 8
#define SOON_NS     30000000
#define LATE_NS     120000000
/* no record is larger; gives the least number of records in a full buffer */
#define RECORD_BYTES 256

#define REFUSAL_VERSION 27 /* older versions of libcupti crash if they get no buffer */

/* Describes a buffer; indexed by its first grain. */
struct entry {
    _Atomic uint32_t next; /* next in the list of filled buffers: index + 1 */
    uint32_t grains;
    uint64_t valid_bytes; /* set by the completed callback */
    CUcontext context;
    uint32_t stream;
};

/* Created once, when CUPTI starts. CUPTI's callbacks, on any thread, and the parser use it. */
static struct {
    uint8_t *base;
    struct entry *entries;
    uint32_t words;          /* without the spare ones, which follow */
    _Atomic uint32_t newest; /* list of filled buffers, newest first: index + 1 */
    uint32_t oldest;         /* the parser's list, oldest first */
    _Atomic uint32_t grains; /* size of the next buffer */
    _Atomic int64_t asked_ns;
    atomic_bool came_early; /* the last buffer came back less than half full: it was flushed */
    _Atomic uint64_t used[WORDS_MAX + SPARE_WORDS];
} pool;

_Atomic uint32_t gpu_buffers_filled;

static uint32_t grain_count(void)
{
    return (pool.words + SPARE_WORDS) * WORD_GRAINS;
}

/* The last buffer, which is never free: requests share it when all others are in use. */
static uint32_t shared_one(void)
{
    return grain_count() - GRAINS_MAX;
}

bool gpu_buffers_create(uint64_t bytes_max)
{
    uint64_t words = bytes_max / WORD_BYTES;
    pool.words = words < 1 ? 1 : words > WORDS_MAX ? WORDS_MAX : (uint32_t)words;
    size_t data_bytes = (size_t)grain_count() * GRAIN_BYTES;
    pool.base = pages_map(data_bytes + grain_count() * sizeof *pool.entries);
    if (!pool.base)
        return false;
    pool.entries = (struct entry *)(void *)(pool.base + data_bytes);
    atomic_store(&pool.grains, 1);
    atomic_store(&pool.used[pool.words + SPARE_WORDS - 1],
                 ~(~(uint64_t)0 >> GRAINS_MAX)); /* reserves the shared one */
    return true;
}

static uint8_t *data_of(uint32_t index)
{
    return pool.base + (size_t)index * GRAIN_BYTES;
}

static uint32_t index_of(const uint8_t *buffer)
{
    return (uint32_t)((size_t)(buffer - pool.base) / GRAIN_BYTES);
}

static uint64_t bits_of(uint32_t index, uint32_t grains)
{
    return ((1ull << grains) - 1) << index % WORD_GRAINS;
}

/* Takes that many adjacent free grains of a word, aligned to their number. Returns the first, or
 * -1. */
static int take_of_word(uint32_t word, uint64_t used, uint32_t grains)
{
    for (uint32_t at = 0; at < WORD_GRAINS; at += grains)
        while (!(used & bits_of(at, grains)))
            if (atomic_compare_exchange_weak(&pool.used[word], &used, used | bits_of(at, grains)))
                return (int)(word * WORD_GRAINS + at);
    return -1;
}

/* Takes a buffer from these words, a smaller one if none is as large as requested; -1: none is
 * free. Takes the lowest first, since their pages are mapped already. */
static int gpu_buffers_take_free(uint32_t first, uint32_t count, uint32_t grains)
{
    for (bool is_full = false; grains && !is_full; grains /= 2) {
        is_full = true;
        for (uint32_t word = first; word < first + count; word++) {
            uint64_t used = atomic_load_explicit(&pool.used[word], memory_order_relaxed);
            int index = ~used ? take_of_word(word, used, grains) : -1;
            is_full &= !~used;
            if (index < 0)
                continue;
            pool.entries[index].grains = grains;
            return index;
        }
    }
    return -1;
}

static void make_free(uint32_t index)
{
    atomic_fetch_and(&pool.used[index / WORD_GRAINS], ~bits_of(index, pool.entries[index].grains));
}

/* The last buffer is full or has come back: was that soon or late? One that was flushed less than
 * half full did not fill soon. */
static uint32_t grains_wanted(void)
{
    int64_t now_ns = (int64_t)clock_ns(CLOCK_MONOTONIC);
    /* Another thread that took its time later may have stored it first. */
    int64_t ns = now_ns - atomic_exchange_explicit(&pool.asked_ns, now_ns, memory_order_relaxed);
    uint32_t grains = atomic_load_explicit(&pool.grains, memory_order_relaxed);
    bool early = atomic_exchange_explicit(&pool.came_early, false, memory_order_relaxed);
    if (ns < SOON_NS && !early && grains < GRAINS_MAX)
        grains *= 2;
    else if (ns > LATE_NS && grains > 1)
        grains /= 2;
    atomic_store_explicit(&pool.grains, grains, memory_order_relaxed);
    return grains;
}

void gpu_buffers_requested(uint8_t **buffer, size_t *size, size_t *record_count_max)
{
    uint32_t grains = grains_wanted();
    int index = gpu_buffers_take_free(0, pool.words, grains);
    if (index < 0) /* such a request does not mean that a buffer was full soon */
        atomic_store_explicit(&pool.grains, 1, memory_order_relaxed);
    if (index < 0 && gpu.cupti.version < REFUSAL_VERSION)
        index = gpu_buffers_take_free(pool.words, SPARE_WORDS, grains);
    if (index < 0 && gpu.cupti.version >= REFUSAL_VERSION) {
        *buffer = NULL; /* then CUPTI drops records, and counts them */
        *size = *record_count_max = 0;
        return;
    }
    /* If all are in use, requests share the last one, whose records nobody reads. */
    *buffer = data_of(index < 0 ? shared_one() : (uint32_t)index);
    *size = (index < 0 ? GRAINS_MAX : pool.entries[index].grains) * GRAIN_BYTES;
    *record_count_max = 0; /* no limit on the number of records */
}

bool gpu_buffers_has(const uint8_t *buffer)
{
    return pool.base && buffer >= pool.base &&
           (size_t)(buffer - pool.base) / GRAIN_BYTES < grain_count();
}

void gpu_buffers_completed(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
                           size_t valid_bytes)
{
    uint32_t index = index_of(buffer);
    struct entry *e = &pool.entries[index];
    atomic_store_explicit(&pool.came_early, valid_bytes < size / 2, memory_order_relaxed);
    if (index == shared_one()) { /* it may be shared, so its contents are never read */
        counter_add(COUNTER_GPU_DROPPED, (valid_bytes + RECORD_BYTES - 1) / RECORD_BYTES);
        return;
    }
    e->valid_bytes = valid_bytes;
    e->context = context;
    e->stream = stream;
    if (!valid_bytes) {
        make_free(index);
        return;
    }
    uint32_t newest = atomic_load(&pool.newest);
    do
        atomic_store_explicit(&e->next, newest, memory_order_relaxed);
    while (!atomic_compare_exchange_weak(&pool.newest, &newest, index + 1));
    atomic_fetch_add(&gpu_buffers_filled, 1);
    futex_wake_all(&gpu_buffers_filled);
}

/* The list of filled buffers is a stack; the parser takes the whole list and reverses it. */
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
                                  .is_spare = index >= pool.words * WORD_GRAINS};
    return true;
}

void gpu_buffers_release(const struct gpu_buffer *buffer)
{
    /* Cleared here; CUPTI would do it on the program's thread. */
    memset(buffer->data, 0, buffer->valid_bytes);
    make_free(index_of(buffer->data));
}
