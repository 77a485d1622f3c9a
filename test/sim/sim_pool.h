/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_POOL_H
#define SIM_POOL_H

/*
 * Type-stable storage of handles: a pointer can be told to be a live object, a destroyed one or
 * no object at all without touching memory that is not ours. Destroyed slots are reused soonest
 * first, as a driver's are, so that tests see handles come back.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Unlikely inside an object, where a wrong handle might point; a division would be slower. */
#define SIM_HANDLE_LIVE 0x51c0da11u

struct sim_handle {
    uint32_t live; /* atomic; SIM_HANDLE_LIVE while the object exists */
    uint32_t next_free;
};

struct sim_pool {
    size_t item_bytes;
    uint32_t capacity;
    char *base;
    uint32_t used;
    uint32_t free_list; /* index + 1 */
    pthread_mutex_t lock;
};

#define SIM_POOL(type, limit)                                                                      \
    {                                                                                              \
        .item_bytes = (sizeof(type) + 63) / 64 * 64, .capacity = (limit),                          \
        .lock = PTHREAD_MUTEX_INITIALIZER                                                          \
    }

/* Zeroed apart from the handle; NULL when the pool is full. */
void *sim_pool_get(struct sim_pool *pool);
void sim_pool_put(struct sim_pool *pool, void *object);

static inline bool sim_pool_has(const struct sim_pool *pool, const void *object)
{
    const char *base = __atomic_load_n(&pool->base, __ATOMIC_ACQUIRE);
    size_t offset = (size_t)((uintptr_t)object - (uintptr_t)base);
    if (!base || offset >= (size_t)pool->capacity * pool->item_bytes || offset % 64 != 0)
        return false;
    return __atomic_load_n(&((const struct sim_handle *)object)->live, __ATOMIC_RELAXED) ==
           SIM_HANDLE_LIVE;
}

#endif
