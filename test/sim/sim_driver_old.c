/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <sys/mman.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/*
 * The forms of CUDA 2, with device pointers and sizes of 32 bits, still exported by every driver.
 * Their memory is placed below 4 GiB; everything else is the present form with wider arguments.
 */

typedef unsigned int u32;

enum { LOW_FIRST = 0x10000000, LOW_STEP = 0x1000000 };

static CUresult low_allocate(CUdeviceptr_v1 *ptr, u32 bytes)
{
    static uintptr_t hint = LOW_FIRST;
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!ptr || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned attempt = 0; attempt < 64; attempt++) {
        uintptr_t wanted = __atomic_fetch_add(&hint, LOW_STEP, __ATOMIC_RELAXED);
        void *block = mmap((void *)wanted, bytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (block == MAP_FAILED)
            break;
        if ((uintptr_t)block + bytes <= UINT32_MAX) {
            *ptr = (CUdeviceptr_v1)(uintptr_t)block;
            return memory_register(*ptr, bytes, MEMORY_VIRTUAL, 0);
        }
        munmap(block, bytes);
    }
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult low_free(CUdeviceptr_v1 ptr)
{
    struct memory memory;
    if (!memory_find(ptr, &memory) || memory.base != ptr)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = memory_free(ptr, KINDS_VIRTUAL);
    if (result == CUDA_SUCCESS)
        munmap((void *)(uintptr_t)ptr, memory.bytes);
    return result;
}

static CUresult low_pitch(CUdeviceptr_v1 *ptr, u32 *pitch, u32 width, u32 height)
{
    u32 row = (width + 511) / 512 * 512;
    if (!pitch)
        return CUDA_ERROR_INVALID_VALUE;
    *pitch = row;
    return low_allocate(ptr, row * height);
}

static CUDA_MEMCPY3D widen_2d(const CUDA_MEMCPY2D_v1 *copy)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch ? copy->srcPitch : copy->WidthInBytes,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch ? copy->dstPitch : copy->WidthInBytes,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = 1,
    };
}

static CUDA_MEMCPY3D widen_3d(const CUDA_MEMCPY3D_v1 *copy)
{
    return (CUDA_MEMCPY3D){
        .srcXInBytes = copy->srcXInBytes,
        .srcY = copy->srcY,
        .srcZ = copy->srcZ,
        .srcMemoryType = copy->srcMemoryType,
        .srcHost = copy->srcHost,
        .srcDevice = copy->srcDevice,
        .srcArray = copy->srcArray,
        .srcPitch = copy->srcPitch,
        .srcHeight = copy->srcHeight,
        .dstXInBytes = copy->dstXInBytes,
        .dstY = copy->dstY,
        .dstZ = copy->dstZ,
        .dstMemoryType = copy->dstMemoryType,
        .dstHost = copy->dstHost,
        .dstDevice = copy->dstDevice,
        .dstArray = copy->dstArray,
        .dstPitch = copy->dstPitch,
        .dstHeight = copy->dstHeight,
        .WidthInBytes = copy->WidthInBytes,
        .Height = copy->Height,
        .Depth = copy->Depth,
    };
}

static CUresult old_2d(const CUDA_MEMCPY2D_v1 *copy, CUstream stream, int sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape = widen_2d(copy);
    return copy_shape(&shape, stream, 0, sync);
}

static CUresult old_3d(const CUDA_MEMCPY3D_v1 *copy, CUstream stream, int sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape = widen_3d(copy);
    return copy_shape(&shape, stream, 0, sync);
}

static CUresult old_array_copy(CUarray array, u32 offset, uint64_t other, u32 bytes,
                               CUstream stream, int sync, bool to_array, bool host)
{
    CUDA_MEMCPY3D shape = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
    CUmemorytype type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    shape.srcMemoryType = to_array ? type : CU_MEMORYTYPE_ARRAY;
    shape.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : type;
    shape.srcHost = shape.dstHost = (void *)(uintptr_t)other;
    shape.srcDevice = shape.dstDevice = other;
    shape.srcArray = shape.dstArray = array;
    *(to_array ? &shape.dstXInBytes : &shape.srcXInBytes) = offset;
    return copy_shape(&shape, stream, 0, sync);
}

static CUresult old_array(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY_DESCRIPTOR wide = {desc->Width, desc->Height, desc->Format, desc->NumChannels};
    return array_create_2d(array, &wide);
}

static CUresult old_array_3d(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc)
{
    if (!desc)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_ARRAY3D_DESCRIPTOR wide = {desc->Width,  desc->Height,      desc->Depth,
                                    desc->Format, desc->NumChannels, desc->Flags};
    return array_create(array, &wide);
}

static CUresult old_info(u32 *free_bytes, u32 *total)
{
    size_t wide_free, wide_total;
    CUresult result = memory_info(&wide_free, &wide_total);
    if (result == CUDA_SUCCESS) {
        *free_bytes = wide_free > UINT32_MAX ? UINT32_MAX : (u32)wide_free;
        *total = wide_total > UINT32_MAX ? UINT32_MAX : (u32)wide_total;
    }
    return result;
}

#define PTR32 CUdeviceptr_v1
#define LINEAR(kind, dst, src, stream, sync)                                                       \
    copy_linear((uint64_t)(uintptr_t)(dst), (uint64_t)(uintptr_t)(src), bytes, stream, 0, sync,    \
                kind)
#define COPY_ARGS A_X(dst), A_X(src), A_U(bytes)

DRV(cuMemAlloc, (PTR32 * ptr, u32 bytes), low_allocate(ptr, bytes), A_U(bytes), A_DEVICE)
DRV(cuMemAllocPitch, (PTR32 * ptr, u32 *pitch, u32 width, u32 height, u32 element),
    low_pitch(ptr, pitch, width, height), A_U(width), A_U(height), A_DEVICE)
DRV(cuMemFree, (PTR32 ptr), low_free(ptr), A_X(ptr))
DRV(cuMemAllocHost, (void **ptr, u32 bytes), allocate_host(ptr, bytes, 0), A_OUT("ptr", ptr),
    A_U(bytes), A_DEVICE)
DRV(cuMemGetInfo, (u32 * free_bytes, u32 *total), old_info(free_bytes, total))
DRV(cuMemcpyHtoD, (PTR32 dst, const void *src, u32 bytes), LINEAR("HtoD", dst, src, NULL, 1),
    COPY_ARGS)
DRV(cuMemcpyDtoH, (void *dst, PTR32 src, u32 bytes), LINEAR("DtoH", dst, src, NULL, 1), COPY_ARGS)
DRV(cuMemcpyDtoD, (PTR32 dst, PTR32 src, u32 bytes), LINEAR("DtoD", dst, src, NULL, 1), COPY_ARGS)
DRV(cuMemcpyHtoDAsync, (PTR32 dst, const void *src, u32 bytes, CUstream stream),
    LINEAR("HtoD", dst, src, stream, 0), COPY_ARGS, A_X(stream))
DRV(cuMemcpyDtoHAsync, (void *dst, PTR32 src, u32 bytes, CUstream stream),
    LINEAR("DtoH", dst, src, stream, 0), COPY_ARGS, A_X(stream))
DRV(cuMemcpyDtoDAsync, (PTR32 dst, PTR32 src, u32 bytes, CUstream stream),
    LINEAR("DtoD", dst, src, stream, 0), COPY_ARGS, A_X(stream))
DRV(cuMemcpyDtoA, (CUarray dst, u32 offset, PTR32 src, u32 bytes),
    old_array_copy(dst, offset, src, bytes, NULL, 1, true, false), COPY_ARGS)
DRV(cuMemcpyAtoD, (PTR32 dst, CUarray src, u32 offset, u32 bytes),
    old_array_copy(src, offset, dst, bytes, NULL, 1, false, false), COPY_ARGS)
DRV(cuMemcpyHtoA, (CUarray dst, u32 offset, const void *src, u32 bytes),
    old_array_copy(dst, offset, (uintptr_t)src, bytes, NULL, 1, true, true), COPY_ARGS)
DRV(cuMemcpyAtoH, (void *dst, CUarray src, u32 offset, u32 bytes),
    old_array_copy(src, offset, (uintptr_t)dst, bytes, NULL, 1, false, true), COPY_ARGS)
DRV(cuMemcpyAtoA, (CUarray dst, u32 dst_offset, CUarray src, u32 src_offset, u32 bytes),
    array_array(dst, dst_offset, src, src_offset, bytes, 0), COPY_ARGS)
DRV(cuMemcpyHtoAAsync, (CUarray dst, u32 offset, const void *src, u32 bytes, CUstream stream),
    old_array_copy(dst, offset, (uintptr_t)src, bytes, stream, 0, true, true), COPY_ARGS,
    A_X(stream))
DRV(cuMemcpyAtoHAsync, (void *dst, CUarray src, u32 offset, u32 bytes, CUstream stream),
    old_array_copy(src, offset, (uintptr_t)dst, bytes, stream, 0, false, true), COPY_ARGS,
    A_X(stream))
DRV(cuMemcpy2D, (const CUDA_MEMCPY2D_v1 *copy), old_2d(copy, NULL, 1))
DRV(cuMemcpy2DUnaligned, (const CUDA_MEMCPY2D_v1 *copy), old_2d(copy, NULL, 1))
DRV(cuMemcpy2DAsync, (const CUDA_MEMCPY2D_v1 *copy, CUstream stream), old_2d(copy, stream, 0),
    A_X(stream))
DRV(cuMemcpy3D, (const CUDA_MEMCPY3D_v1 *copy), old_3d(copy, NULL, 1))
DRV(cuMemcpy3DAsync, (const CUDA_MEMCPY3D_v1 *copy, CUstream stream), old_3d(copy, stream, 0),
    A_X(stream))

#define SET(bits, size, type)                                                                      \
    DRV(cuMemsetD##bits, (PTR32 dst, type value, u32 count),                                       \
        fill_memory((struct fill){dst, 0, count, 1, value, size}, NULL, 0, 1), A_X(dst),           \
        A_U(count))                                                                                \
    DRV(cuMemsetD2D##bits, (PTR32 dst, u32 pitch, type value, u32 width, u32 height),              \
        fill_memory((struct fill){dst, pitch, width, height, value, size}, NULL, 0, 1), A_X(dst),  \
        A_U(width), A_U(height))
SET(8, 1, unsigned char)
SET(16, 2, unsigned short)
SET(32, 4, unsigned int)
#undef SET

DRV(cuArrayCreate, (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *desc), old_array(array, desc),
    A_OUT("array", array), A_DEVICE)
DRV(cuArray3DCreate, (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *desc),
    old_array_3d(array, desc), A_OUT("array", array), A_DEVICE)
