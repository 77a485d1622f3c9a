/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Allocation. Pointers of the runtime are device pointers of the driver. */

#define PTR(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUresult allocate(void **ptr, size_t bytes)
{
    if (!ptr)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes == 0) {
        *ptr = NULL;
        return CUDA_SUCCESS;
    }
    return D(cuMemAlloc_v2, cuMemAlloc, 3020)((CUdeviceptr *)ptr, bytes);
}

static CUresult release(void *ptr)
{
    return ptr ? D(cuMemFree_v2, cuMemFree, 3020)(PTR(ptr)) : CUDA_SUCCESS;
}

static CUresult allocate_pitch(void **ptr, size_t *pitch, size_t width, size_t height)
{
    return D(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)((CUdeviceptr *)ptr, pitch, width, height,
                                                        4);
}

static CUresult allocate_3d(struct cudaPitchedPtr *out, struct cudaExtent extent)
{
    CUdeviceptr ptr = 0;
    size_t pitch = 0;
    if (!out)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = D(cuMemAllocPitch_v2, cuMemAllocPitch, 3020)(&ptr, &pitch, extent.width,
                                                                   extent.height * extent.depth, 4);
    *out = (struct cudaPitchedPtr){(void *)(uintptr_t)ptr, pitch, extent.width, extent.height};
    return result;
}

static cudaError_t pointer_attributes(struct cudaPointerAttributes *out, const void *ptr)
{
    CUcontext context = NULL;
    unsigned type = 0, managed = 0;
    int device = -2;
    void *device_ptr = NULL, *host_ptr = NULL;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *values[] = {&context, &type, &device_ptr, &host_ptr, &managed, &device};
    if (!out)
        return cudaErrorInvalidValue;
    CUresult result = D(cuPointerGetAttributes, cuPointerGetAttributes,
                        7000)(sizeof values / sizeof values[0], attributes, values, PTR(ptr));
    *out = (struct cudaPointerAttributes){
        .type = managed                        ? cudaMemoryTypeManaged
                : type == CU_MEMORYTYPE_HOST   ? cudaMemoryTypeHost
                : type == CU_MEMORYTYPE_DEVICE ? cudaMemoryTypeDevice
                                               : cudaMemoryTypeUnregistered,
        .device = device,
        .devicePointer = device_ptr,
        .hostPointer = type ? host_ptr : (void *)(uintptr_t)ptr,
    };
    return (cudaError_t)result;
}

RT(cudaMalloc, (void **ptr, size_t bytes), allocate(ptr, bytes), A_OUT("ptr", ptr), A_U(bytes),
   A_DEVICE)
RT(cudaFree, (void *ptr), release(ptr), A_X(ptr))
RT(cudaMallocHost, (void **ptr, size_t bytes),
   D(cuMemHostAlloc, cuMemHostAlloc, 2020)(ptr, bytes, CU_MEMHOSTALLOC_PORTABLE), A_OUT("ptr", ptr),
   A_U(bytes), A_DEVICE)
RT(cudaHostAlloc, (void **ptr, size_t bytes, unsigned flags),
   D(cuMemHostAlloc, cuMemHostAlloc, 2020)(ptr, bytes, flags), A_OUT("ptr", ptr), A_U(bytes),
   A_U(flags), A_DEVICE)
RT(cudaFreeHost, (void *ptr), ptr ? D(cuMemFreeHost, cuMemFreeHost, 2000)(ptr) : CUDA_SUCCESS,
   A_X(ptr))
RT(cudaHostRegister, (void *ptr, size_t bytes, unsigned flags),
   D(cuMemHostRegister_v2, cuMemHostRegister, 6050)(ptr, bytes, flags), A_X(ptr), A_U(bytes),
   A_U(flags), A_DEVICE)
RT(cudaHostUnregister, (void *ptr), D(cuMemHostUnregister, cuMemHostUnregister, 4000)(ptr),
   A_X(ptr))
RT(cudaHostGetDevicePointer, (void **device, void *host, unsigned flags),
   D(cuMemHostGetDevicePointer_v2, cuMemHostGetDevicePointer, 3020)((CUdeviceptr *)device, host,
                                                                    flags),
   A_X(host))
RT(cudaHostGetFlags, (unsigned *flags, void *host),
   D(cuMemHostGetFlags, cuMemHostGetFlags, 2030)(flags, host), A_X(host))
RT(cudaMallocManaged, (void **ptr, size_t bytes, unsigned flags),
   D(cuMemAllocManaged, cuMemAllocManaged, 6000)((CUdeviceptr *)ptr, bytes, flags),
   A_OUT("ptr", ptr), A_U(bytes), A_U(flags), A_DEVICE)
RT(cudaMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height),
   allocate_pitch(ptr, pitch, width, height), A_OUT("ptr", ptr), A_U(width), A_U(height), A_DEVICE)
RT(cudaMalloc3D, (struct cudaPitchedPtr * ptr, struct cudaExtent extent), allocate_3d(ptr, extent),
   A_OUT("ptr", ptr), A_KU("bytes", extent.width *extent.height *extent.depth), A_DEVICE)
RT(cudaMemGetInfo, (size_t * free_bytes, size_t *total),
   D(cuMemGetInfo_v2, cuMemGetInfo, 3020)(free_bytes, total), A_OUT("free", free_bytes),
   A_OUT("total", total), A_DEVICE)
RT(cudaPointerGetAttributes, (struct cudaPointerAttributes * attributes, const void *ptr),
   pointer_attributes(attributes, ptr), A_X(ptr))
RT(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * handle, void *ptr),
   D(cuIpcGetMemHandle, cuIpcGetMemHandle, 4010)((CUipcMemHandle *)handle, PTR(ptr)), A_X(ptr))
RT(cudaIpcOpenMemHandle, (void **ptr, cudaIpcMemHandle_t handle, unsigned flags),
   D(cuIpcOpenMemHandle_v2, cuIpcOpenMemHandle, 11000)((CUdeviceptr *)ptr,
                                                       *(CUipcMemHandle *)&handle, flags),
   A_OUT("ptr", ptr))
RT(cudaIpcCloseMemHandle, (void *ptr), D(cuIpcCloseMemHandle, cuIpcCloseMemHandle, 4010)(PTR(ptr)),
   A_X(ptr))
RT(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * handle, cudaEvent_t event),
   D(cuIpcGetEventHandle, cuIpcGetEventHandle, 4010)((CUipcEventHandle *)handle, event), A_X(event))
RT(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t handle),
   D(cuIpcOpenEventHandle, cuIpcOpenEventHandle, 4010)(event, *(CUipcEventHandle *)&handle),
   A_OUT("event", event))

/* Stream-ordered. */
RT2(cudaMallocAsync, _ptsz, (void **ptr, size_t bytes, cudaStream_t stream),
    D2(cuMemAllocAsync, cuMemAllocAsync, 11020, 11020)((CUdeviceptr *)ptr, bytes, stream),
    A_OUT("ptr", ptr), A_U(bytes), A_X(stream), A_DEVICE)
RT2(cudaFreeAsync, _ptsz, (void *ptr, cudaStream_t stream),
    D2(cuMemFreeAsync, cuMemFreeAsync, 11020, 11020)(PTR(ptr), stream), A_X(ptr), A_X(stream))
RT2(cudaMallocFromPoolAsync, _ptsz,
    (void **ptr, size_t bytes, cudaMemPool_t pool, cudaStream_t stream),
    D2(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync, 11020, 11020)((CUdeviceptr *)ptr, bytes,
                                                                       pool, stream),
    A_OUT("ptr", ptr), A_U(bytes), A_X(pool), A_X(stream), A_DEVICE)
RT(cudaMemPoolCreate, (cudaMemPool_t * pool, const struct cudaMemPoolProps *props),
   D(cuMemPoolCreate, cuMemPoolCreate, 11020)(pool, (const CUmemPoolProps *)props),
   A_OUT("pool", pool))
RT(cudaMemPoolDestroy, (cudaMemPool_t pool), D(cuMemPoolDestroy, cuMemPoolDestroy, 11020)(pool),
   A_X(pool))
RT(cudaMemPoolTrimTo, (cudaMemPool_t pool, size_t bytes),
   D(cuMemPoolTrimTo, cuMemPoolTrimTo, 11020)(pool, bytes), A_X(pool), A_U(bytes))
RT(cudaMemPoolSetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
   D(cuMemPoolSetAttribute, cuMemPoolSetAttribute, 11020)(pool, (CUmemPool_attribute)attribute,
                                                          value),
   A_X(pool))
RT(cudaMemPoolGetAttribute, (cudaMemPool_t pool, enum cudaMemPoolAttr attribute, void *value),
   D(cuMemPoolGetAttribute, cuMemPoolGetAttribute, 11020)(pool, (CUmemPool_attribute)attribute,
                                                          value),
   A_X(pool))
RT(cudaMemPoolSetAccess, (cudaMemPool_t pool, const struct cudaMemAccessDesc *list, size_t count),
   D(cuMemPoolSetAccess, cuMemPoolSetAccess, 11020)(pool, (const CUmemAccessDesc *)list, count),
   A_X(pool))
RT(cudaMemPoolGetAccess,
   (enum cudaMemAccessFlags * flags, cudaMemPool_t pool, struct cudaMemLocation *location),
   D(cuMemPoolGetAccess, cuMemPoolGetAccess, 11020)((CUmemAccess_flags *)flags, pool,
                                                    (CUmemLocation *)location),
   A_X(pool))
RT(cudaMemPoolExportPointer, (struct cudaMemPoolPtrExportData * data, void *ptr),
   D(cuMemPoolExportPointer, cuMemPoolExportPointer, 11020)((CUmemPoolPtrExportData *)data,
                                                            PTR(ptr)),
   A_X(ptr))
RT(cudaMemPoolImportPointer,
   (void **ptr, cudaMemPool_t pool, struct cudaMemPoolPtrExportData *data),
   D(cuMemPoolImportPointer, cuMemPoolImportPointer, 11020)((CUdeviceptr *)ptr, pool,
                                                            (CUmemPoolPtrExportData *)data),
   A_OUT("ptr", ptr), A_X(pool))
#if SIM_CUDART_MAJOR >= 13
RT(cudaMemGetDefaultMemPool,
   (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
   D(cuMemGetDefaultMemPool, cuMemGetDefaultMemPool, 13000)(pool, (CUmemLocation *)location,
                                                            (CUmemAllocationType)type),
   A_OUT("pool", pool))
RT(cudaMemGetMemPool,
   (cudaMemPool_t * pool, struct cudaMemLocation *location, enum cudaMemAllocationType type),
   D(cuMemGetMemPool, cuMemGetMemPool, 13000)(pool, (CUmemLocation *)location,
                                              (CUmemAllocationType)type),
   A_OUT("pool", pool))
RT(cudaMemSetMemPool,
   (struct cudaMemLocation * location, enum cudaMemAllocationType type, cudaMemPool_t pool),
   D(cuMemSetMemPool, cuMemSetMemPool, 13000)((CUmemLocation *)location, (CUmemAllocationType)type,
                                              pool),
   A_X(pool))
#endif

/* External memory. */
RT(cudaImportExternalMemory,
   (cudaExternalMemory_t * out, const struct cudaExternalMemoryHandleDesc *desc),
   D(cuImportExternalMemory, cuImportExternalMemory,
     10000)((CUexternalMemory *)out, (const CUDA_EXTERNAL_MEMORY_HANDLE_DESC *)desc),
   A_OUT("handle", out))
RT(cudaDestroyExternalMemory, (cudaExternalMemory_t handle),
   D(cuDestroyExternalMemory, cuDestroyExternalMemory, 10000)((CUexternalMemory)handle),
   A_X(handle))
RT(cudaExternalMemoryGetMappedBuffer,
   (void **ptr, cudaExternalMemory_t handle, const struct cudaExternalMemoryBufferDesc *desc),
   D(cuExternalMemoryGetMappedBuffer, cuExternalMemoryGetMappedBuffer,
     10000)((CUdeviceptr *)ptr, (CUexternalMemory)handle,
            (const CUDA_EXTERNAL_MEMORY_BUFFER_DESC *)desc),
   A_OUT("ptr", ptr), A_X(handle), A_KU("bytes", desc ? desc->size : 0))
RT(cudaExternalMemoryGetMappedMipmappedArray,
   (cudaMipmappedArray_t * out, cudaExternalMemory_t handle,
    const struct cudaExternalMemoryMipmappedArrayDesc *desc),
   D(cuExternalMemoryGetMappedMipmappedArray, cuExternalMemoryGetMappedMipmappedArray,
     10000)((CUmipmappedArray *)out, (CUexternalMemory)handle,
            (const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC *)desc),
   A_X(handle))
