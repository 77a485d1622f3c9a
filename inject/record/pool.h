/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pool of chunks in the live file. Threads take and leave chunks without a lock; the writer
 * frees the chunks that it has sealed. The pool grows up to its limit, always on storage that is
 * allocated.
 */
#ifndef GPUPROF_INJECT_POOL_H
#define GPUPROF_INJECT_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "live.h"
#include "record/state.h"

/*
 * Creates gp.pool with the counters: the mapped live file, or memory if no file is possible
 * (reported once). If the file system supports it, the file has no name yet; call pool_publish or
 * pool_remove next. Returns false, after a message, if there is no memory.
 */
bool pool_create(void);
void pool_remove(void);

/* Gives the live file its name, now that the stream file, which refers to it, exists. */
void pool_publish(void);

/*
 * Returns a new descriptor of the published file, which the caller closes: from the one kept open,
 * or by name if the program has closed that. -1 with errno on failure; ESTALE: the name now belongs
 * to another file.
 */
int pool_open_file(void);

/* Unmaps the pool: only in the child of a fork, where no other thread can use it. Counters restart
 * at 0. */
void pool_forget(void);

/* Removes the file, whose data is completely in the stream. The mapping stays. */
void pool_unlink(const struct stream_header *header);

/*
 * Takes a free, empty chunk, now OWNED by thread `number`/`tid` at `position`; NULL: there is none.
 * The `first` chunk of a thread may be beyond the buffer's size: idle threads must not keep others
 * from being recorded.
 */
uint8_t *pool_take(struct pool *pool, uint32_t number, uint32_t tid, uint64_t position, bool first);

/* The writer allocates free chunks and maps their pages before a thread needs them: the first touch
 * of a page takes 0.5 to 6 us, which the program would have to wait. */
void pool_prepare(struct pool *pool);

/* The owner empties a chunk whose records are all sealed and continues in it at `position`. The
 * chunk counts as TAKEN until pool_begun. */
void pool_begin_anew(struct pool *pool, uint8_t *chunk, uint64_t position);
void pool_begun(struct pool *pool, uint8_t *chunk);

/*
 * The owner, thread `number`, leaves a chunk with `used` bytes of complete records to the writer.
 */
void pool_leave(struct pool *pool, uint8_t *chunk, uint32_t number, uint64_t used);

/* Leaves the chunk for an owner that is gone, if thread `number` still owns it. Its open calls
 * become abandoned. */
void pool_leave_dead(struct pool *pool, uint8_t *chunk, uint32_t number);

/* The writer has sealed this many bytes of the chunk. */
void pool_set_sealed(struct pool *pool, uint8_t *chunk, uint64_t sealed);

/* The writer has sealed all of it. */
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

/* The state that readers see; pool_owner has our own copy. */
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
