/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/* Allocation entry points of the driver: device, pitched, host, managed, registered, IPC. */

enum { PITCH_ALIGNMENT = 512 };

static CUresult allocate(enum memory_kind kind, CUdeviceptr *ptr, size_t bytes, unsigned flags)
{
    uint64_t address = 0;
    CUresult result = capture_forbids_thread();
    if (result == CUDA_SUCCESS && !ptr)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = memory_allocate(kind, bytes, flags, NULL, &address);
    if (result == CUDA_SUCCESS)
        *ptr = address;
    host_spend_on_memory();
    return result;
}

static CUresult allocate_pitch(CUdeviceptr *ptr, size_t *pitch, size_t width, size_t height,
                               unsigned element)
{
    if (!ptr || !pitch || width == 0 || height == 0 ||
        (element != 4 && element != 8 && element != 16))
        return CUDA_ERROR_INVALID_VALUE;
    size_t row = (width + PITCH_ALIGNMENT - 1) / PITCH_ALIGNMENT * PITCH_ALIGNMENT;
    CUresult result = allocate(MEMORY_DEVICE, ptr, row * height, 0);
    if (result == CUDA_SUCCESS)
        *pitch = row;
    return result;
}

/* Freeing device memory waits for the device, as the real one does in effect. */
static CUresult release(uint64_t address, unsigned kinds, bool wait)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = capture_forbids_thread();
    if (result != CUDA_SUCCESS || address == 0)
        return result;
    struct memory memory;
    if (!memory_find(address, &memory) || memory.base != address || !(kinds & 1u << memory.kind))
        return CUDA_ERROR_INVALID_VALUE;
    if (wait)
        context_wait(context);
    host_spend_on_memory();
    return memory_free(address, kinds);
}

CUresult allocate_host(void **ptr, size_t bytes, unsigned flags)
{
    CUdeviceptr address = 0;
    if (!ptr || flags > 7)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = allocate(MEMORY_HOST, &address, bytes, flags);
    if (result == CUDA_SUCCESS)
        *ptr = (void *)(uintptr_t)address;
    return result;
}

static CUresult host_pointer(CUdeviceptr *device, void *host)
{
    struct memory memory;
    if (!device || !memory_find((uintptr_t)host, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    *device = (uintptr_t)host;
    return CUDA_SUCCESS;
}

static CUresult host_flags(unsigned *flags, void *host)
{
    struct memory memory;
    if (!flags || !memory_find((uintptr_t)host, &memory) ||
        !(1u << memory.kind & (KINDS_HOST | KINDS_REGISTERED)))
        return CUDA_ERROR_INVALID_VALUE;
    *flags = memory.flags;
    return CUDA_SUCCESS;
}

static CUresult register_host(void *ptr, size_t bytes, unsigned flags)
{
    host_spend_on_memory();
    return memory_register((uintptr_t)ptr, bytes, MEMORY_REGISTERED, flags);
}

static CUresult unregister(void *ptr)
{
    host_spend_on_memory();
    CUresult result = memory_free((uintptr_t)ptr, KINDS_REGISTERED);
    return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : result;
}

static CUresult allocate_managed(CUdeviceptr *ptr, size_t bytes, unsigned flags)
{
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST)
        return CUDA_ERROR_INVALID_VALUE;
    return allocate(MEMORY_MANAGED, ptr, bytes, flags);
}

CUresult memory_info(size_t *free_bytes, size_t *total)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!free_bytes || !total)
        return CUDA_ERROR_INVALID_VALUE;
    *total = sim_config.memory_bytes;
    *free_bytes = sim_config.memory_bytes - context->device->used_bytes;
    return CUDA_SUCCESS;
}

static CUresult address_range(CUdeviceptr *base, size_t *bytes, CUdeviceptr ptr)
{
    struct memory memory;
    if (!memory_find(ptr, &memory))
        return CUDA_ERROR_NOT_FOUND;
    if (base)
        *base = memory.base;
    if (bytes)
        *bytes = memory.bytes;
    return CUDA_SUCCESS;
}

/* Another process gets memory of the same size; bytes do not travel between processes. */
struct ipc {
    uint64_t address, bytes;
    int pid;
};

static CUresult ipc_get(CUipcMemHandle *handle, CUdeviceptr ptr)
{
    struct memory memory;
    if (!handle || !memory_find(ptr, &memory) || memory.kind != MEMORY_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    struct ipc ipc = {memory.base, memory.bytes, (int)getpid()};
    memset(handle, 0, sizeof *handle);
    memcpy(handle->reserved, &ipc, sizeof ipc);
    return CUDA_SUCCESS;
}

static CUresult ipc_open(CUdeviceptr *ptr, CUipcMemHandle handle)
{
    struct ipc ipc;
    memcpy(&ipc, handle.reserved, sizeof ipc);
    if (!ptr || ipc.bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (ipc.pid == (int)getpid())
        return CUDA_ERROR_INVALID_CONTEXT;
    return allocate(MEMORY_IPC, ptr, ipc.bytes, 0);
}

DRV(cuMemGetInfo_v2, (size_t * free_bytes, size_t *total), memory_info(free_bytes, total),
    A_OUT("free", free_bytes), A_OUT("total", total), A_DEVICE)
DRV(cuMemAlloc_v2, (CUdeviceptr * ptr, size_t bytes), allocate(MEMORY_DEVICE, ptr, bytes, 0),
    A_OUT("ptr", ptr), A_U(bytes), A_DEVICE)
DRV(cuMemAllocPitch_v2,
    (CUdeviceptr * ptr, size_t *pitch, size_t width, size_t height, unsigned element),
    allocate_pitch(ptr, pitch, width, height, element), A_OUT("ptr", ptr), A_U(width), A_U(height),
    A_DEVICE)
DRV(cuMemFree_v2, (CUdeviceptr ptr), release(ptr, KINDS_DEVICE, true), A_X(ptr))
DRV(cuMemGetAddressRange_v2, (CUdeviceptr * base, size_t *bytes, CUdeviceptr ptr),
    address_range(base, bytes, ptr), A_X(ptr))
DRV(cuMemAllocHost_v2, (void **ptr, size_t bytes), allocate_host(ptr, bytes, 0), A_OUT("ptr", ptr),
    A_U(bytes), A_DEVICE)
DRV(cuMemFreeHost, (void *ptr), release((uintptr_t)ptr, KINDS_HOST, false), A_X(ptr))
DRV(cuMemHostAlloc, (void **ptr, size_t bytes, unsigned flags), allocate_host(ptr, bytes, flags),
    A_OUT("ptr", ptr), A_U(bytes), A_U(flags), A_DEVICE)
DRV(cuMemHostGetDevicePointer_v2, (CUdeviceptr * device, void *host, unsigned flags),
    host_pointer(device, host), A_X(host))
DRV(cuMemHostGetFlags, (unsigned *flags, void *host), host_flags(flags, host), A_X(host))
DRV(cuMemHostRegister_v2, (void *ptr, size_t bytes, unsigned flags),
    register_host(ptr, bytes, flags), A_X(ptr), A_U(bytes), A_U(flags), A_DEVICE)
DRV(cuMemHostRegister, (void *ptr, size_t bytes, unsigned flags), register_host(ptr, bytes, flags),
    A_X(ptr), A_U(bytes), A_U(flags), A_DEVICE)
DRV(cuMemHostUnregister, (void *ptr), unregister(ptr), A_X(ptr))
DRV(cuMemAllocManaged, (CUdeviceptr * ptr, size_t bytes, unsigned flags),
    allocate_managed(ptr, bytes, flags), A_OUT("ptr", ptr), A_U(bytes), A_U(flags), A_DEVICE)
DRV(cuIpcGetMemHandle, (CUipcMemHandle * handle, CUdeviceptr ptr), ipc_get(handle, ptr), A_X(ptr))
DRV(cuIpcOpenMemHandle, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned flags),
    ipc_open(ptr, handle), A_OUT("ptr", ptr))
DRV(cuIpcOpenMemHandle_v2, (CUdeviceptr * ptr, CUipcMemHandle handle, unsigned flags),
    ipc_open(ptr, handle), A_OUT("ptr", ptr))
DRV(cuIpcCloseMemHandle, (CUdeviceptr ptr), release(ptr, KINDS_IPC, false), A_X(ptr))
