/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of chunks in the live file. Threads take and leave chunks without a lock; the writer
 * frees what it has sealed. The pool grows up to its cap, always on storage that is really there.
 */
#ifndef GPUPROF_INJECT_POOL_H
#define GPUPROF_INJECT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "record/state.h"

/*
 * Makes gp.pool: the live file (or memory, if no file can be had; said once), mapped, with the
 * counters. Where the file system allows it the file has no name yet; pool_publish or pool_remove
 * is to follow. False: no memory (said).
 */
bool pool_create(void);
void pool_remove(void);

/* The stream file, which says where the live file is, is there: gives this its name. */
void pool_publish(void);

/*
 * A new descriptor of the published file, which the caller closes: of the one that is kept, or, if
 * the program has closed that, by name. -1: errno; ESTALE if it is another file by now.
 */
int pool_open_file(void);

/* Unmaps it: only in the child of a fork, where nobody else can use it. Counters begin at 0. */
void pool_forget(void);

/* Removes the file: everything in it is in the stream. The mapping stays. */
void pool_unlink(const struct stream_header *header);

/*
 * A free chunk, now OWNED by thread `number`/`tid` at `position`, empty; NULL if there is none. The
 * `first` one of a thread may be beyond the buffer's size: threads that do nothing must not keep
 * others from being recorded.
 */
uint8_t *pool_take(struct pool *pool, uint32_t number, uint32_t tid, uint64_t position, bool first);

/*
 * The writer gets storage for free chunks and maps their pages before a thread needs them: the
 * first touch of a page takes 0.5 to 6 us, which the program would wait for.
 */
void pool_prepare(struct pool *pool);

/*
 * Its owner empties a chunk whose records are all sealed, to go on in it at `position`: it counts
 * as TAKEN until pool_begun.
 */
void pool_begin_anew(struct pool *pool, uint8_t *chunk, uint64_t position);
void pool_begun(struct pool *pool, uint8_t *chunk);

/* Its owner, thread `number`, leaves a chunk with `used` bytes of whole records to the writer. */
void pool_leave(struct pool *pool, uint8_t *chunk, uint32_t number, uint64_t used);

/*
 * Somebody does it for an owner that is gone, as long as it is thread `number` that owns it. Calls
 * that it never came back from become stale ones.
 */
void pool_leave_dead(struct pool *pool, uint8_t *chunk, uint32_t number);

/* The writer has sealed that many bytes of it. */
void pool_set_sealed(struct pool *pool, uint8_t *chunk, uint64_t sealed);

/* It has sealed all of it. */
void pool_free(struct pool *pool, uint8_t *chunk);

static inline uint8_t *pool_chunk(const struct pool *pool, uint32_t index)
{
    return pool->base + LIVE_HEAD_BYTES + (size_t)index * pool->chunk_bytes;
}

static inline struct chunk_owner *pool_owner(const struct pool *pool, const uint8_t *chunk)
{
    return &pool->owners[(size_t)(chunk - pool->base - LIVE_HEAD_BYTES) / pool->chunk_bytes];
}

static inline enum live_chunk_state owner_state(const struct chunk_owner *o)
{
    return (enum live_chunk_state)(uint32_t)atomic_load_explicit(&o->word, memory_order_acquire);
}

static inline uint32_t owner_number(const struct chunk_owner *o)
{
    return (uint32_t)(atomic_load_explicit(&o->word, memory_order_acquire) >> 32);
}

/* As a reader sees it; pool_owner's is ours. */
static inline _Atomic uint32_t *chunk_state(uint8_t *chunk)
{
    return (_Atomic uint32_t *)(void *)(chunk + LIVE_CHUNK_STATE);
}

static inline uint32_t chunk_u32(const uint8_t *chunk, unsigned offset)
{
    return __atomic_load_n((const uint32_t *)(const void *)(chunk + offset), __ATOMIC_RELAXED);
}

static inline void chunk_set_u32(uint8_t *chunk, unsigned offset, uint32_t value)
{
    __atomic_store_n((uint32_t *)(void *)(chunk + offset), value, __ATOMIC_RELAXED);
}

static inline uint64_t chunk_u64(const uint8_t *chunk, unsigned offset)
{
    return __atomic_load_n((const uint64_t *)(const void *)(chunk + offset), __ATOMIC_ACQUIRE);
}

static inline void chunk_set_u64(uint8_t *chunk, unsigned offset, uint64_t value)
{
    __atomic_store_n((uint64_t *)(void *)(chunk + offset), value, __ATOMIC_RELEASE);
}

#endif
