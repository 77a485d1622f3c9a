/* SPDX-License-Identifier: Apache-2.0 */
#include <sys/mman.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/* Virtual memory management: ranges are really reserved and really become accessible. */

enum { GRANULARITY = 2 << 20 };

struct allocation {
    struct sim_handle handle;
    struct sim_device *device;
    size_t bytes;
    bool is_multicast;
};

static struct sim_pool pool_allocations = SIM_POOL(struct allocation, 1 << 16);

static struct allocation *allocation_check(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = (struct allocation *)(uintptr_t)handle;
    return sim_pool_has(&pool_allocations, allocation) ? allocation : NULL;
}

static CUresult allocation_create(CUmemGenericAllocationHandle *handle, size_t bytes, int ordinal)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || bytes == 0 || bytes % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    result = memory_account(device, bytes);
    if (result != CUDA_SUCCESS)
        return result;
    struct allocation *allocation = sim_pool_get(&pool_allocations);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->device = device;
    allocation->bytes = bytes;
    *handle = (uintptr_t)allocation;
    return CUDA_SUCCESS;
}

static CUresult allocation_release(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = allocation_check(handle);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    if (!allocation->is_multicast)
        __atomic_sub_fetch(&allocation->device->used_bytes, allocation->bytes, __ATOMIC_RELAXED);
    sim_pool_put(&pool_allocations, allocation);
    return CUDA_SUCCESS;
}

/* At a multiple of the granularity, as the driver's addresses are. */
static CUresult range_reserve(CUdeviceptr *ptr, size_t bytes)
{
    if (!ptr || bytes == 0 || bytes % GRANULARITY)
        return CUDA_ERROR_INVALID_VALUE;
    size_t more = bytes + GRANULARITY;
    void *range = mmap(NULL, more, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED)
        return CUDA_ERROR_OUT_OF_MEMORY;
    uintptr_t begin = (uintptr_t)range;
    uintptr_t aligned = (begin + GRANULARITY - 1) / GRANULARITY * GRANULARITY;
    if (aligned > begin)
        munmap(range, aligned - begin);
    munmap((void *)(aligned + bytes), begin + more - aligned - bytes);
    *ptr = aligned;
    return CUDA_SUCCESS;
}

static CUresult range_free(CUdeviceptr ptr, size_t bytes)
{
    return ptr && munmap((void *)(uintptr_t)ptr, bytes) == 0 ? CUDA_SUCCESS
                                                             : CUDA_ERROR_INVALID_VALUE;
}

/* Needs no context: a thread that never had one may map. */
static CUresult range_map(CUdeviceptr ptr, size_t bytes, CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = allocation_check(handle);
    if (!allocation || bytes == 0 || bytes > allocation->bytes)
        return CUDA_ERROR_INVALID_VALUE;
    return memory_map(ptr, bytes, allocation->device);
}

/* The range may hold several mappings, and only whole ones. */
static CUresult range_unmap(CUdeviceptr ptr, size_t bytes)
{
    struct memory memory;
    CUdeviceptr end = ptr + bytes;
    for (CUdeviceptr at = ptr; at < end; at += memory.bytes)
        if (!memory_find(at, &memory) || memory.kind != MEMORY_VIRTUAL || memory.base != at ||
            memory.bytes > end - at)
            return CUDA_ERROR_INVALID_VALUE;
    for (CUdeviceptr at = ptr; at < end && memory_find(at, &memory); at += memory.bytes)
        memory_free(at, KINDS_VIRTUAL);
    mprotect((void *)(uintptr_t)ptr, bytes, PROT_NONE);
    return bytes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult range_access(CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc)
{
    struct memory memory;
    if (!desc || !memory_find(ptr, &memory) || memory.kind != MEMORY_VIRTUAL)
        return CUDA_ERROR_INVALID_VALUE;
    int protection =
        desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ? PROT_NONE : PROT_READ | PROT_WRITE;
    return mprotect((void *)(uintptr_t)ptr, bytes, protection) == 0 ? CUDA_SUCCESS
                                                                    : CUDA_ERROR_INVALID_VALUE;
}

static CUresult granularity(size_t *bytes)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = GRANULARITY;
    return CUDA_SUCCESS;
}

static CUresult multicast_create(CUmemGenericAllocationHandle *handle,
                                 const CUmulticastObjectProp *prop)
{
    struct allocation *allocation =
        handle && prop && prop->size ? sim_pool_get(&pool_allocations) : NULL;
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    allocation->bytes = prop->size;
    allocation->is_multicast = true;
    *handle = (uintptr_t)allocation;
    return CUDA_SUCCESS;
}

static CUresult multicast_check(CUmemGenericAllocationHandle handle, size_t bytes)
{
    struct allocation *allocation = allocation_check(handle);
    return allocation && allocation->is_multicast && bytes && bytes <= allocation->bytes
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
}

DRV(cuMemCreate,
    (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *prop,
     unsigned long long flags),
    prop ? allocation_create(handle, bytes, prop->location.id) : CUDA_ERROR_INVALID_VALUE,
    A_OUT("handle", handle), A_U(bytes))
DRV(cuMemRelease, (CUmemGenericAllocationHandle handle), allocation_release(handle), A_X(handle))
DRV(cuMemAddressReserve,
    (CUdeviceptr * ptr, size_t bytes, size_t alignment, CUdeviceptr hint, unsigned long long flags),
    range_reserve(ptr, bytes), A_OUT("ptr", ptr), A_U(bytes))
DRV(cuMemAddressFree, (CUdeviceptr ptr, size_t bytes), range_free(ptr, bytes), A_X(ptr), A_U(bytes))
DRV(cuMemMap,
    (CUdeviceptr ptr, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
     unsigned long long flags),
    range_map(ptr, bytes, handle), A_X(ptr), A_U(bytes), A_X(handle))
DRV(cuMemUnmap, (CUdeviceptr ptr, size_t bytes), range_unmap(ptr, bytes), A_X(ptr), A_U(bytes))
DRV(cuMemSetAccess, (CUdeviceptr ptr, size_t bytes, const CUmemAccessDesc *desc, size_t count),
    range_access(ptr, bytes, desc), A_X(ptr), A_U(bytes))
DRV(cuMemGetAllocationGranularity,
    (size_t * bytes, const CUmemAllocationProp *prop, CUmemAllocationGranularity_flags flags),
    granularity(bytes))
DRV2(cuMemMapArrayAsync, _ptsz, (CUarrayMapInfo * list, unsigned count, CUstream stream),
     CUDA_ERROR_NOT_SUPPORTED, A_U(count), A_X(stream))
DRV(cuMulticastCreate, (CUmemGenericAllocationHandle * handle, const CUmulticastObjectProp *prop),
    multicast_create(handle, prop), A_OUT("handle", handle))
DRV(cuMulticastBindMem,
    (CUmemGenericAllocationHandle handle, size_t offset, CUmemGenericAllocationHandle memory,
     size_t memory_offset, size_t bytes, unsigned long long flags),
    multicast_check(handle, bytes), A_X(handle), A_U(bytes))
DRV(cuMulticastBindAddr,
    (CUmemGenericAllocationHandle handle, size_t offset, CUdeviceptr ptr, size_t bytes,
     unsigned long long flags),
    multicast_check(handle, bytes), A_X(handle), A_X(ptr), A_U(bytes))
DRV(cuMulticastUnbind,
    (CUmemGenericAllocationHandle handle, CUdevice device, size_t offset, size_t bytes),
    multicast_check(handle, bytes), A_X(handle), A_U(bytes))
