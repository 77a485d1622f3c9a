/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_driver.h"

/* Memory and semaphores of other APIs, and green contexts, which are contexts by another name. */

struct external {
    struct sim_handle handle;
    bool is_semaphore;
};

static struct sim_pool pool_externals = SIM_POOL(struct external, 4096);

static CUresult external_import(void **out, const void *desc, bool is_semaphore)
{
    struct external *external = out && desc ? sim_pool_get(&pool_externals) : NULL;
    if (!external)
        return CUDA_ERROR_INVALID_VALUE;
    external->is_semaphore = is_semaphore;
    *out = external;
    return CUDA_SUCCESS;
}

static bool external_check(const void *handle, bool is_semaphore)
{
    return sim_pool_has(&pool_externals, handle) &&
           ((const struct external *)handle)->is_semaphore == is_semaphore;
}

static CUresult external_destroy(void *handle, bool is_semaphore)
{
    if (!external_check(handle, is_semaphore))
        return CUDA_ERROR_INVALID_HANDLE;
    sim_pool_put(&pool_externals, handle);
    return CUDA_SUCCESS;
}

static CUresult external_buffer(CUdeviceptr *ptr, CUexternalMemory handle,
                                const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc)
{
    uint64_t address = 0;
    if (!external_check(handle, false))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!ptr || !desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = memory_allocate(MEMORY_DEVICE, desc->size, 0, NULL, &address);
    *ptr = address;
    return result;
}

/* Semaphores are always signalled: there is nobody on the other side. */
static CUresult external_semaphores(const CUexternalSemaphore *list, unsigned count,
                                    CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS && count && !list)
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS; i++)
        if (!external_check(list[i], true))
            result = CUDA_ERROR_INVALID_HANDLE;
    return result;
}

DRV(cuImportExternalMemory, (CUexternalMemory * out, const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *desc),
    external_import((void **)out, desc, false), A_OUT("handle", out))
DRV(cuDestroyExternalMemory, (CUexternalMemory handle), external_destroy(handle, false),
    A_X(handle))
DRV(cuExternalMemoryGetMappedBuffer,
    (CUdeviceptr * ptr, CUexternalMemory handle, const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *desc),
    external_buffer(ptr, handle, desc), A_OUT("ptr", ptr), A_X(handle),
    A_KU("bytes", desc ? desc->size : 0))
DRV(cuExternalMemoryGetMappedMipmappedArray,
    (CUmipmappedArray * mipmap, CUexternalMemory handle,
     const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *desc),
    external_check(handle, false) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_HANDLE,
    A_X(handle))
DRV(cuImportExternalSemaphore,
    (CUexternalSemaphore * out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc),
    external_import((void **)out, desc, true), A_OUT("handle", out))
DRV(cuDestroyExternalSemaphore, (CUexternalSemaphore handle), external_destroy(handle, true),
    A_X(handle))
DRV2(cuSignalExternalSemaphoresAsync, _ptsz,
     (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
      unsigned count, CUstream stream),
     external_semaphores(list, count, stream, pt), A_U(count), A_X(stream))
DRV2(cuWaitExternalSemaphoresAsync, _ptsz,
     (const CUexternalSemaphore *list, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
      unsigned count, CUstream stream),
     external_semaphores(list, count, stream, pt), A_U(count), A_X(stream))

static CUresult green_create(CUgreenCtx *green, CUdevice ordinal)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result == CUDA_SUCCESS && !green)
        result = CUDA_ERROR_INVALID_VALUE;
    return result == CUDA_SUCCESS ? context_primary(device, (CUcontext *)green) : result;
}

static CUcontext green_check(CUgreenCtx green)
{
    return context_check((CUcontext)green);
}

DRV(cuGreenCtxCreate, (CUgreenCtx * green, CUdevResourceDesc desc, CUdevice device, unsigned flags),
    green_create(green, device), A_OUT("ctx", green), A_U(device))
DRV(cuCtxFromGreenCtx, (CUcontext * context, CUgreenCtx green),
    context &&green_check(green) ? (*context = green_check(green), CUDA_SUCCESS)
                                 : CUDA_ERROR_INVALID_VALUE,
    A_OUT("ctx", context), A_X(green))
DRV(cuGreenCtxDestroy, (CUgreenCtx ctx),
    green_check(ctx) ? primary_release(green_check(ctx)->device->ordinal, false)
                     : CUDA_ERROR_INVALID_HANDLE,
    A_X(ctx))
DRV(cuGreenCtxRecordEvent, (CUgreenCtx ctx, CUevent event),
    green_check(ctx) ? context_event(green_check(ctx), event, true) : CUDA_ERROR_INVALID_HANDLE,
    A_X(ctx), A_X(event))
DRV(cuGreenCtxWaitEvent, (CUgreenCtx ctx, CUevent event),
    green_check(ctx) ? context_event(green_check(ctx), event, false) : CUDA_ERROR_INVALID_HANDLE,
    A_X(ctx), A_X(event))
