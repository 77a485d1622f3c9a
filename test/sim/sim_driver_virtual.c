/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/*
 * Virtual memory management: ranges are really reserved and really become accessible. Physical
 * memory lasts as long as it has a reference or is mapped. What is exported is a file that says how
 * large it is; who imports it has memory that is not his own.
 */

enum { GRANULARITY = 2 << 20 };

struct allocation {
    struct sim_handle handle;
    struct sim_device *device;
    size_t bytes;
    unsigned references, mappings; /* under the lock */
    bool is_multicast, is_foreign;
};

struct mapping {
    CUdeviceptr ptr;
    size_t bytes;
    struct allocation *of;
};

static struct {
    pthread_mutex_t lock;
    struct mapping *items;
    size_t count, limit;
} mappings = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct sim_pool pool_allocations = SIM_POOL(struct allocation, 1 << 16);

static struct allocation *allocation_check(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = (struct allocation *)(uintptr_t)handle;
    return sim_pool_has(&pool_allocations, allocation) && allocation->references ? allocation
                                                                                 : NULL;
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
    allocation->references = 1;
    *handle = (uintptr_t)allocation;
    return CUDA_SUCCESS;
}

/* With the lock held. */
static void allocation_drop(struct allocation *allocation)
{
    if (allocation->references || allocation->mappings)
        return;
    if (!allocation->is_multicast && !allocation->is_foreign)
        __atomic_sub_fetch(&allocation->device->used_bytes, allocation->bytes, __ATOMIC_RELAXED);
    sim_pool_put(&pool_allocations, allocation);
}

static CUresult allocation_release(CUmemGenericAllocationHandle handle)
{
    struct allocation *allocation = allocation_check(handle);
    if (!allocation)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mappings.lock);
    allocation->references--;
    allocation_drop(allocation);
    pthread_mutex_unlock(&mappings.lock);
    return CUDA_SUCCESS;
}

static CUresult allocation_export(void *shareable, CUmemGenericAllocationHandle handle,
                                  CUmemAllocationHandleType type)
{
    struct allocation *allocation = allocation_check(handle);
    if (!allocation || !shareable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_INVALID_VALUE;
    int file = memfd_create("simcuda-memory", MFD_CLOEXEC);
    if (file < 0 || write(file, &allocation->bytes, sizeof allocation->bytes) < 0)
        return CUDA_ERROR_OPERATING_SYSTEM;
    *(int *)shareable = file;
    return CUDA_SUCCESS;
}

static CUresult allocation_import(CUmemGenericAllocationHandle *handle, void *file,
                                  CUmemAllocationHandleType type)
{
    size_t bytes;
    struct sim_device *device;
    CUresult result = driver_device(context_ordinal(), &device);
    if (result != CUDA_SUCCESS)
        return result;
    if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        pread((int)(intptr_t)file, &bytes, sizeof bytes, 0) != sizeof bytes)
        return CUDA_ERROR_INVALID_VALUE;
    struct allocation *allocation = sim_pool_get(&pool_allocations);
    if (!allocation)
        return CUDA_ERROR_OUT_OF_MEMORY;
    allocation->device = device;
    allocation->bytes = bytes;
    allocation->references = 1;
    allocation->is_foreign = true;
    *handle = (uintptr_t)allocation;
    return CUDA_SUCCESS;
}

/* The mapping in which `ptr` lies; with the lock held. */
static struct mapping *mapping_of(CUdeviceptr ptr)
{
    for (size_t i = 0; i < mappings.count; i++)
        if (ptr - mappings.items[i].ptr < mappings.items[i].bytes)
            return &mappings.items[i];
    return NULL;
}

static CUresult allocation_retain(CUmemGenericAllocationHandle *handle, void *ptr)
{
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&mappings.lock);
    struct mapping *mapping = mapping_of((uintptr_t)ptr);
    if (handle && mapping) {
        mapping->of->references++;
        *handle = (uintptr_t)mapping->of;
        result = CUDA_SUCCESS;
    }
    pthread_mutex_unlock(&mappings.lock);
    return result;
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
    CUresult result = CUDA_ERROR_OUT_OF_MEMORY;
    pthread_mutex_lock(&mappings.lock);
    if (mappings.count == mappings.limit) {
        size_t limit = mappings.limit ? mappings.limit * 2 : 64;
        struct mapping *items = realloc(mappings.items, limit * sizeof *items);
        mappings.items = items ? items : mappings.items;
        mappings.limit = items ? limit : mappings.limit;
    }
    if (mappings.count < mappings.limit)
        result = memory_map(ptr, bytes, allocation->device);
    if (result == CUDA_SUCCESS) {
        mappings.items[mappings.count++] = (struct mapping){ptr, bytes, allocation};
        allocation->mappings++;
    }
    pthread_mutex_unlock(&mappings.lock);
    return result;
}

static void mapping_remove(CUdeviceptr ptr)
{
    pthread_mutex_lock(&mappings.lock);
    struct mapping *mapping = mapping_of(ptr);
    if (mapping) {
        struct allocation *allocation = mapping->of;
        *mapping = mappings.items[--mappings.count];
        allocation->mappings--;
        allocation_drop(allocation);
    }
    pthread_mutex_unlock(&mappings.lock);
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
        mapping_remove(at), memory_free(at, KINDS_VIRTUAL);
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
    allocation->references = 1;
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
    A_OUT("handle", handle), A_U(bytes), A_KU("device", prop ? prop->location.id : 0))
DRV(cuMemExportToShareableHandle,
    (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
     unsigned long long flags),
    allocation_export(shareable, handle, type), A_X(handle))
DRV(cuMemImportFromShareableHandle,
    (CUmemGenericAllocationHandle * handle, void *file, CUmemAllocationHandleType type),
    allocation_import(handle, file, type), A_OUT("handle", handle))
DRV(cuMemRetainAllocationHandle, (CUmemGenericAllocationHandle * handle, void *ptr),
    allocation_retain(handle, ptr), A_OUT("handle", handle), A_X(ptr))
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
