/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"
#include "sim_memory_kinds.h"

/* Stream-ordered allocation and its pools. */

struct sim_pool pool_mempools = SIM_POOL(struct CUmemPoolHandle_st, 4096);

static CUmemoryPool mempool_check(CUmemoryPool pool)
{
    return sim_pool_has(&pool_mempools, pool) ? pool : NULL;
}

static void raise_to(uint64_t *high, uint64_t value)
{
    uint64_t old = __atomic_load_n(high, __ATOMIC_RELAXED);
    while (old < value && !__atomic_compare_exchange_n(high, &old, value, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

static void lower_to(uint64_t *high, uint64_t value)
{
    uint64_t old = __atomic_load_n(high, __ATOMIC_RELAXED);
    while (old > value && !__atomic_compare_exchange_n(high, &old, value, true, __ATOMIC_RELAXED,
                                                       __ATOMIC_RELAXED))
        ;
}

void mempool_take(CUmemoryPool pool, uint64_t bytes)
{
    uint64_t used = __atomic_add_fetch(&pool->used, bytes, __ATOMIC_RELAXED);
    raise_to(&pool->used_high, used);
    raise_to(&pool->reserved, used);
    raise_to(&pool->reserved_high, used);
}

/* What is not used stays with the pool, up to its threshold. */
void mempool_give_back(CUmemoryPool pool, uint64_t bytes)
{
    uint64_t used = __atomic_sub_fetch(&pool->used, bytes, __ATOMIC_RELAXED);
    lower_to(&pool->reserved, used > pool->threshold ? used : pool->threshold);
}

static CUresult allocate_async(CUdeviceptr *ptr, size_t bytes, CUmemoryPool pool, CUstream handle,
                               int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!pool)
        pool = stream->context->device->current_pool;
    if (!ptr || !mempool_check(pool))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t address = 0;
    result = memory_allocate(MEMORY_ASYNC, bytes, 0, pool, &address);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_node_params params = {.address = address, .bytes = bytes};
    if (capture_take(stream, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params, &result) &&
        result != CUDA_SUCCESS) {
        memory_free(address, KINDS_ASYNC);
        return result;
    }
    *ptr = address;
    return CUDA_SUCCESS;
}

static void free_run(void *address)
{
    memory_free((uintptr_t)address, KINDS_ASYNC);
}

static CUresult free_async(CUdeviceptr ptr, CUstream handle, int pt)
{
    CUstream stream;
    struct memory memory;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS || ptr == 0)
        return result;
    if (!memory_find(ptr, &memory) || memory.base != ptr || !(KINDS_ASYNC & 1u << memory.kind))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_node_params params = {.address = ptr, .bytes = memory.bytes};
    /* The memory of a graph stays: a replay uses it again. */
    if (capture_take(stream, CU_GRAPH_NODE_TYPE_MEM_FREE, &params, &result))
        return result;
    if (host_op_done(__atomic_load_n(&stream->last_op, __ATOMIC_ACQUIRE)))
        return memory_free(ptr, KINDS_ASYNC);
    host_op_enqueue(stream, (struct host_action){free_run, NULL, (void *)(uintptr_t)ptr, false});
    return CUDA_SUCCESS;
}

static CUresult mempool_create(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    struct sim_device *device;
    if (!pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = driver_device(
        props->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? props->location.id : 0, &device);
    if (result != CUDA_SUCCESS)
        return result;
    *pool = sim_pool_get(&pool_mempools);
    if (!*pool)
        return CUDA_ERROR_OUT_OF_MEMORY;
    (*pool)->device = device;
    trace_mempool(*pool, 1, 0);
    return CUDA_SUCCESS;
}

static CUresult mempool_destroy(CUmemoryPool pool)
{
    if (!mempool_check(pool) || pool->is_default)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device->current_pool == pool)
        pool->device->current_pool = pool->device->default_pool;
    trace_mempool(pool, 2, 0);
    sim_pool_put(&pool_mempools, pool);
    return CUDA_SUCCESS;
}

static CUresult mempool_attribute(CUmemoryPool pool, CUmemPool_attribute attribute, void *value,
                                  bool set)
{
    if (!mempool_check(pool) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t *wide = NULL;
    switch (attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: wide = &pool->threshold; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: wide = &pool->reserved; break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: wide = &pool->reserved_high; break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: wide = &pool->used; break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: wide = &pool->used_high; break;
    default: break;
    }
    if (!wide && (attribute < 1 || attribute > 3))
        return CUDA_ERROR_INVALID_VALUE;
    int *narrow = wide ? NULL : &pool->reuse[attribute];
    if (wide)
        set ? memcpy(wide, value, sizeof *wide) : memcpy(value, wide, sizeof *wide);
    else
        set ? memcpy(narrow, value, sizeof *narrow) : memcpy(value, narrow, sizeof *narrow);
    return CUDA_SUCCESS;
}

static CUresult mempool_trim(CUmemoryPool pool, size_t keep_bytes)
{
    if (!mempool_check(pool))
        return CUDA_ERROR_INVALID_VALUE;
    uint64_t used = __atomic_load_n(&pool->used, __ATOMIC_RELAXED);
    lower_to(&pool->reserved, used > keep_bytes ? used : keep_bytes);
    trace_mempool(pool, 3, keep_bytes);
    return CUDA_SUCCESS;
}

static CUresult mempool_access(CUmemAccess_flags *flags, CUmemoryPool pool)
{
    if (!mempool_check(pool) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return CUDA_SUCCESS;
}

static CUresult location_pool(CUmemoryPool *pool, const CUmemLocation *location, bool is_default)
{
    struct sim_device *device;
    if (!pool || !location || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = driver_device(location->id, &device);
    if (result == CUDA_SUCCESS)
        *pool = is_default ? device->default_pool : device->current_pool;
    return result;
}

static CUresult location_set_pool(const CUmemLocation *location, CUmemoryPool pool)
{
    struct sim_device *device;
    if (!location || !mempool_check(pool))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = driver_device(location->id, &device);
    if (result == CUDA_SUCCESS)
        device->current_pool = pool;
    return result;
}

static CUresult pointer_export(CUmemPoolPtrExportData *data, CUdeviceptr ptr)
{
    struct memory memory;
    if (!data || !memory_find(ptr, &memory) || memory.kind != MEMORY_ASYNC)
        return CUDA_ERROR_INVALID_VALUE;
    memset(data, 0, sizeof *data);
    memcpy(data->reserved, &memory.bytes, sizeof memory.bytes);
    return CUDA_SUCCESS;
}

static CUresult pointer_import(CUdeviceptr *ptr, CUmemoryPool pool,
                               const CUmemPoolPtrExportData *data)
{
    size_t bytes;
    uint64_t address = 0;
    if (!ptr || !data || !mempool_check(pool))
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&bytes, data->reserved, sizeof bytes);
    CUresult result = memory_allocate(MEMORY_ASYNC, bytes, 0, pool, &address);
    *ptr = address;
    return result;
}

DRV2(cuMemAllocAsync, _ptsz, (CUdeviceptr * ptr, size_t bytes, CUstream stream),
     allocate_async(ptr, bytes, NULL, stream, pt), A_OUT("ptr", ptr), A_U(bytes), A_X(stream),
     A_DEVICE)
DRV2(cuMemAllocFromPoolAsync, _ptsz,
     (CUdeviceptr * ptr, size_t bytes, CUmemoryPool pool, CUstream stream),
     pool ? allocate_async(ptr, bytes, pool, stream, pt) : CUDA_ERROR_INVALID_VALUE,
     A_OUT("ptr", ptr), A_U(bytes), A_X(pool), A_X(stream), A_DEVICE)
DRV2(cuMemFreeAsync, _ptsz, (CUdeviceptr ptr, CUstream stream), free_async(ptr, stream, pt),
     A_X(ptr), A_X(stream))
DRV(cuMemPoolCreate, (CUmemoryPool * pool, const CUmemPoolProps *props),
    mempool_create(pool, props), A_OUT("pool", pool))
DRV(cuMemPoolDestroy, (CUmemoryPool pool), mempool_destroy(pool), A_X(pool))
DRV(cuMemPoolTrimTo, (CUmemoryPool pool, size_t bytes), mempool_trim(pool, bytes), A_X(pool),
    A_U(bytes))
DRV(cuMemPoolSetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
    mempool_attribute(pool, attribute, value, true), A_X(pool))
DRV(cuMemPoolGetAttribute, (CUmemoryPool pool, CUmemPool_attribute attribute, void *value),
    mempool_attribute(pool, attribute, value, false), A_X(pool))
DRV(cuMemPoolSetAccess, (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count),
    mempool_check(pool) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE, A_X(pool))
DRV(cuMemPoolGetAccess, (CUmemAccess_flags * flags, CUmemoryPool pool, CUmemLocation *location),
    mempool_access(flags, pool), A_X(pool))
DRV(cuMemPoolExportPointer, (CUmemPoolPtrExportData * data, CUdeviceptr ptr),
    pointer_export(data, ptr), A_X(ptr))
DRV(cuMemPoolImportPointer, (CUdeviceptr * ptr, CUmemoryPool pool, CUmemPoolPtrExportData *data),
    pointer_import(ptr, pool, data), A_OUT("ptr", ptr), A_X(pool))
DRV(cuMemGetDefaultMemPool,
    (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
    location_pool(pool, location, true), A_OUT("pool", pool))
DRV(cuMemGetMemPool, (CUmemoryPool * pool, CUmemLocation *location, CUmemAllocationType type),
    location_pool(pool, location, false), A_OUT("pool", pool))
DRV(cuMemSetMemPool, (CUmemLocation * location, CUmemAllocationType type, CUmemoryPool pool),
    location_set_pool(location, pool), A_X(pool))
