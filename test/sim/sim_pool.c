/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_pool.h"

#include <string.h>
#include <sys/mman.h>

static bool pool_map(struct sim_pool *pool)
{
    if (pool->base)
        return true;
    char *base = mmap(NULL, pool->item_bytes * pool->capacity, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return false;
    __atomic_store_n(&pool->base, base, __ATOMIC_RELEASE);
    return true;
}

void *sim_pool_get(struct sim_pool *pool)
{
    struct sim_handle *object = NULL;
    pthread_mutex_lock(&pool->lock);
    if (pool_map(pool)) {
        if (pool->free_list) {
            object = (void *)(pool->base + (size_t)(pool->free_list - 1) * pool->item_bytes);
            pool->free_list = object->next_free;
        } else if (pool->used < pool->capacity) {
            object = (void *)(pool->base + (size_t)pool->used++ * pool->item_bytes);
        }
    }
    if (object) {
        memset(object, 0, pool->item_bytes);
        __atomic_store_n(&object->live, SIM_HANDLE_LIVE, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&pool->lock);
    return object;
}

void sim_pool_put(struct sim_pool *pool, void *object)
{
    struct sim_handle *handle = object;
    pthread_mutex_lock(&pool->lock);
    __atomic_store_n(&handle->live, 0, __ATOMIC_RELEASE);
    handle->next_free = pool->free_list;
    pool->free_list = (uint32_t)(((char *)object - pool->base) / (ptrdiff_t)pool->item_bytes) + 1;
    pthread_mutex_unlock(&pool->lock);
}
