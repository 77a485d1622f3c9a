/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

/*
 * All that was allocated or registered, sorted by address. Large blocks are mapped without
 * reserve: a program may allocate the whole simulated device and touch little of it.
 */

enum { MAP_BYTES_MIN = 1 << 20, ALIGNMENT = 512 };

static struct {
    pthread_rwlock_t lock;
    struct memory *items;
    size_t count, limit;
} table = {.lock = PTHREAD_RWLOCK_INITIALIZER};

/* The index of the first item beyond ADDRESS. */
static size_t table_above(uint64_t address)
{
    size_t low = 0, high = table.count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (table.items[middle].base <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool memory_find(uint64_t address, struct memory *found)
{
    bool is_found = false;
    pthread_rwlock_rdlock(&table.lock);
    size_t above = table_above(address);
    if (above > 0) {
        *found = table.items[above - 1];
        is_found = address - found->base < (found->bytes ? found->bytes : 1);
    }
    pthread_rwlock_unlock(&table.lock);
    return is_found;
}

bool memory_is_pageable(uint64_t address)
{
    struct memory memory;
    return !memory_find(address, &memory);
}

static bool table_insert(const struct memory *memory)
{
    bool done = true;
    pthread_rwlock_wrlock(&table.lock);
    if (table.count == table.limit) {
        size_t limit = table.limit ? table.limit * 2 : 256;
        struct memory *items = realloc(table.items, limit * sizeof *items);
        if (items) {
            table.items = items;
            table.limit = limit;
        }
        done = items != NULL;
    }
    if (done) {
        size_t at = table_above(memory->base);
        memmove(&table.items[at + 1], &table.items[at], (table.count - at) * sizeof *memory);
        table.items[at] = *memory;
        table.count++;
    }
    pthread_rwlock_unlock(&table.lock);
    return done;
}

static bool table_remove(uint64_t address, unsigned kinds, struct memory *removed)
{
    bool done = false;
    pthread_rwlock_wrlock(&table.lock);
    size_t above = table_above(address);
    if (above > 0 && table.items[above - 1].base == address &&
        (kinds & (1u << table.items[above - 1].kind))) {
        *removed = table.items[above - 1];
        memmove(&table.items[above - 1], &table.items[above],
                (table.count - above) * sizeof *removed);
        table.count--;
        done = true;
    }
    pthread_rwlock_unlock(&table.lock);
    return done;
}

CUresult memory_account(struct sim_device *device, uint64_t bytes)
{
    uint64_t used = __atomic_add_fetch(&device->used_bytes, bytes, __ATOMIC_RELAXED);
    if (used <= sim_config.memory_bytes)
        return CUDA_SUCCESS;
    __atomic_sub_fetch(&device->used_bytes, bytes, __ATOMIC_RELAXED);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool kind_is_accounted(enum memory_kind kind)
{
    return kind == MEMORY_DEVICE || kind == MEMORY_MANAGED || kind == MEMORY_ASYNC;
}

static bool block_take(struct memory *memory)
{
    size_t bytes = (memory->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    void *block;
    memory->is_mapped = bytes >= MAP_BYTES_MIN || memory->kind == MEMORY_GLOBAL;
    if (memory->is_mapped) {
        memory->mapped_bytes = bytes;
        block = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block == MAP_FAILED)
            return false;
    } else {
        block = aligned_alloc(ALIGNMENT, bytes);
    }
    memory->base = (uintptr_t)block;
    return block != NULL;
}

static void block_return(const struct memory *memory)
{
    if (memory->kind == MEMORY_REGISTERED || memory->kind == MEMORY_VIRTUAL)
        return;
    if (memory->is_mapped)
        munmap((void *)memory->base, memory->mapped_bytes);
    else
        free((void *)memory->base);
}

CUresult memory_allocate(enum memory_kind kind, size_t bytes, unsigned flags, CUmemoryPool pool,
                         uint64_t *address)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    struct memory memory = {.bytes = bytes,
                            .kind = kind,
                            .flags = flags,
                            .device = pool ? pool->device : context->device,
                            .context = context,
                            .pool = pool,
                            .id = driver_serial()};
    if (kind_is_accounted(kind) && (result = memory_account(memory.device, bytes)))
        return result;
    if (!block_take(&memory) || !table_insert(&memory)) {
        if (kind_is_accounted(kind))
            __atomic_sub_fetch(&memory.device->used_bytes, bytes, __ATOMIC_RELAXED);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *address = memory.base;
    if (pool)
        mempool_take(pool, bytes);
    trace_memory(&memory, false);
    return CUDA_SUCCESS;
}

static void memory_release(const struct memory *memory)
{
    if (memory->pool && sim_pool_has(&pool_mempools, memory->pool))
        mempool_give_back(memory->pool, memory->bytes);
    trace_memory(memory, true);
    if (kind_is_accounted(memory->kind))
        __atomic_sub_fetch(&memory->device->used_bytes, memory->bytes, __ATOMIC_RELAXED);
    block_return(memory);
}

CUresult memory_free(uint64_t address, unsigned kinds)
{
    struct memory memory;
    if (!table_remove(address, kinds, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    memory_release(&memory);
    return CUDA_SUCCESS;
}

/* What belonged to a context goes with it. */
void memory_context_release(CUcontext context)
{
    for (;;) {
        struct memory memory = {0};
        bool is_found = false;
        pthread_rwlock_wrlock(&table.lock);
        for (size_t i = table.count; i-- > 0 && !is_found;)
            if (table.items[i].context == context) {
                memory = table.items[i];
                memmove(&table.items[i], &table.items[i + 1],
                        (table.count - i - 1) * sizeof memory);
                table.count--;
                is_found = true;
            }
        pthread_rwlock_unlock(&table.lock);
        if (!is_found)
            break;
        memory_release(&memory);
    }
}

/* Of no context: what is mapped is the device's. */
CUresult memory_map(uint64_t address, size_t bytes, struct sim_device *device)
{
    struct memory found;
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_find(address, &found))
        return CUDA_ERROR_ALREADY_MAPPED;
    struct memory memory = {.base = address,
                            .bytes = bytes,
                            .kind = MEMORY_VIRTUAL,
                            .device = device,
                            .id = driver_serial()};
    return table_insert(&memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult memory_register(uint64_t address, size_t bytes, enum memory_kind kind, unsigned flags)
{
    CUcontext context;
    struct memory found;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!address || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (memory_find(address, &found))
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    struct memory memory = {.base = address,
                            .bytes = bytes,
                            .kind = kind,
                            .flags = flags,
                            .device = context->device,
                            .context = context,
                            .id = driver_serial()};
    return table_insert(&memory) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}
