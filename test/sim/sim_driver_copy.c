/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"
#include "sim_memory_kinds.h"

/*
 * Copies. Every copy is a box of bytes between two places, each a pointer with a pitch or an
 * array; a linear one has one row. The bytes move when the copy is enqueued, or on the host thread
 * if a host function is still to come before it.
 */

enum { STAGED_AT_ONCE_BYTES = 64 << 10 };

struct place {
    char *at;
    size_t pitch, slice;
};

static bool place_of(struct place *place, CUmemorytype type, const void *host, CUdeviceptr device,
                     CUarray array, size_t pitch, size_t height)
{
    switch (type) {
    case CU_MEMORYTYPE_HOST: place->at = (char *)(uintptr_t)host; break;
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED: place->at = (char *)(uintptr_t)device; break;
    case CU_MEMORYTYPE_ARRAY:
        if (!sim_pool_has(&pool_arrays, array))
            return false;
        place->at = array->memory;
        pitch = array->pitch_bytes;
        height = array->height;
        break;
    default: return false;
    }
    place->pitch = pitch;
    place->slice = pitch * height;
    return place->at != NULL;
}

static bool places(const CUDA_MEMCPY3D *shape, struct place *dst, struct place *src)
{
    if (!place_of(dst, shape->dstMemoryType, shape->dstHost, shape->dstDevice, shape->dstArray,
                  shape->dstPitch, shape->dstHeight) ||
        !place_of(src, shape->srcMemoryType, shape->srcHost, shape->srcDevice, shape->srcArray,
                  shape->srcPitch, shape->srcHeight))
        return false;
    dst->at += shape->dstXInBytes + shape->dstY * dst->pitch + shape->dstZ * dst->slice;
    src->at += shape->srcXInBytes + shape->srcY * src->pitch + shape->srcZ * src->slice;
    return true;
}

CUresult copy_shape_check(const CUDA_MEMCPY3D *shape)
{
    struct place dst, src;
    if (!shape)
        return CUDA_ERROR_INVALID_VALUE;
    if (shape->WidthInBytes == 0 || shape->Height == 0 || shape->Depth == 0)
        return CUDA_SUCCESS;
    if (!places(shape, &dst, &src))
        return CUDA_ERROR_INVALID_VALUE;
    if (shape->Height > 1 && (dst.pitch < shape->WidthInBytes || src.pitch < shape->WidthInBytes))
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

void copy_shape_now(const CUDA_MEMCPY3D *shape)
{
    struct place dst, src;
    if (!shape->WidthInBytes || !places(shape, &dst, &src))
        return;
    for (size_t z = 0; z < shape->Depth; z++)
        for (size_t y = 0; y < shape->Height; y++)
            memmove(dst.at + z * dst.slice + y * dst.pitch, src.at + z * src.slice + y * src.pitch,
                    shape->WidthInBytes);
}

static char type_letter(CUmemorytype type, const void *host, CUdeviceptr device)
{
    struct memory memory;
    if (type == CU_MEMORYTYPE_ARRAY)
        return 'A';
    if (type == CU_MEMORYTYPE_HOST)
        return 'H';
    if (type == CU_MEMORYTYPE_DEVICE)
        return 'D';
    if (!memory_find(device, &memory))
        return 'H';
    return memory.kind == MEMORY_HOST || memory.kind == MEMORY_REGISTERED ? 'H' : 'D';
}

/* HtoD, DtoH ... : a unified pointer is looked up. */
const char *copy_kind(const CUDA_MEMCPY3D *shape)
{
    static const char *const kinds[] = {"HtoH", "HtoD", "HtoA", "DtoH", "DtoD",
                                        "DtoA", "AtoH", "AtoD", "AtoA"};
    char src = type_letter(shape->srcMemoryType, shape->srcHost, shape->srcDevice);
    char dst = type_letter(shape->dstMemoryType, shape->dstHost, shape->dstDevice);
    int row = src == 'H' ? 0 : src == 'D' ? 1 : 2, column = dst == 'H' ? 0 : dst == 'D' ? 1 : 2;
    return kinds[row * 3 + column];
}

/* Of host memory that the device cannot read itself: what a copy from or to it is staged for. */
bool copy_is_pageable(const CUDA_MEMCPY3D *shape)
{
    const char *kind = copy_kind(shape);
    return (kind[0] == 'H' && memory_is_pageable(shape->srcMemoryType == CU_MEMORYTYPE_HOST
                                                     ? (uintptr_t)shape->srcHost
                                                     : shape->srcDevice)) ||
           (kind[3] == 'H' && memory_is_pageable(shape->dstMemoryType == CU_MEMORYTYPE_HOST
                                                     ? (uintptr_t)shape->dstHost
                                                     : shape->dstDevice));
}

static void copy_run(void *shape)
{
    copy_shape_now(shape);
}

/* A copy that has to wait for a host function goes to the host thread. */
static CUresult copy_apply(const CUDA_MEMCPY3D *shape, CUstream stream)
{
    if (host_op_done(__atomic_load_n(&stream->last_op, __ATOMIC_ACQUIRE))) {
        copy_shape_now(shape);
        return CUDA_SUCCESS;
    }
    CUDA_MEMCPY3D *own = malloc(sizeof *own);
    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *own = *shape;
    host_op_enqueue(stream, (struct host_action){copy_run, NULL, own, true});
    return CUDA_SUCCESS;
}

CUresult copy_shape(const CUDA_MEMCPY3D *shape, CUstream handle, int pt, int sync)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS)
        result = copy_shape_check(shape);
    if (result == CUDA_SUCCESS && sync)
        result = capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sync && stream->capture) {
        struct graph_node_params params = {.copy = *shape};
        if (capture_take(stream, CU_GRAPH_NODE_TYPE_MEMCPY, &params, &result))
            return result;
    }
    if (!sync && capture_take(stream, CU_GRAPH_NODE_TYPE_MEMCPY, NULL, &result))
        return result;
    size_t bytes = shape->WidthInBytes * shape->Height * shape->Depth;
    const char *kind = copy_kind(shape);
    const bool is_pageable = copy_is_pageable(shape);
    struct work work = {.what = "memcpy", .duration_ns = copy_duration(bytes, is_pageable)};
    result = copy_apply(shape, stream);
    work_enqueue(stream, &work);
    if (work_wanted()) {
        const struct sim_arg args[] = {A_U(bytes), A_KS("kind", kind)};
        work_log(stream, &work, args, 2);
        trace_copy(stream, &work, shape, !sync, NULL);
    }
    /* A copy between device memories does not hold the host; one that is staged does, but for what
     * goes into the staging buffer at once. */
    bool is_staged = is_pageable && (kind[3] == 'H' || bytes > STAGED_AT_ONCE_BYTES);
    if (result == CUDA_SUCCESS && ((sync && strcmp(kind, "DtoD") != 0) || is_staged))
        result = stream_wait(stream);
    return result;
}

CUresult copy_linear(uint64_t dst, uint64_t src, size_t bytes, CUstream stream, int pt, int sync,
                     const char *kind)
{
    CUDA_MEMCPY3D shape = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
    shape.srcMemoryType = kind[0] == 'H'   ? CU_MEMORYTYPE_HOST
                          : kind[0] == 'D' ? CU_MEMORYTYPE_DEVICE
                                           : CU_MEMORYTYPE_UNIFIED;
    shape.dstMemoryType = kind[3] == 'H'   ? CU_MEMORYTYPE_HOST
                          : kind[3] == 'D' ? CU_MEMORYTYPE_DEVICE
                                           : CU_MEMORYTYPE_UNIFIED;
    shape.srcHost = (const void *)(uintptr_t)src;
    shape.srcDevice = src;
    shape.dstHost = (void *)(uintptr_t)dst;
    shape.dstDevice = dst;
    struct memory memory;
    /* Device pointers that are none would crash us: the real device reports them. */
    if (bytes && ((kind[0] == 'D' && !memory_find(src, &memory)) ||
                  (kind[3] == 'D' && !memory_find(dst, &memory))))
        return driver_guard() ?: CUDA_ERROR_INVALID_VALUE;
    if (bytes && (!src || !dst))
        return CUDA_ERROR_INVALID_VALUE;
    return copy_shape(&shape, stream, pt, sync);
}

static CUresult array_linear(CUarray array, size_t offset, uint64_t other, size_t bytes,
                             CUstream stream, int pt, int sync, bool to_array, bool host)
{
    CUDA_MEMCPY3D shape = {.WidthInBytes = bytes, .Height = 1, .Depth = 1};
    CUmemorytype type = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
    if (!sim_pool_has(&pool_arrays, array))
        return CUDA_ERROR_INVALID_HANDLE;
    shape.srcMemoryType = to_array ? type : CU_MEMORYTYPE_ARRAY;
    shape.dstMemoryType = to_array ? CU_MEMORYTYPE_ARRAY : type;
    shape.srcHost = shape.dstHost = (void *)(uintptr_t)other;
    shape.srcDevice = shape.dstDevice = other;
    shape.srcArray = shape.dstArray = array;
    *(to_array ? &shape.dstXInBytes : &shape.srcXInBytes) = offset;
    return copy_shape(&shape, stream, pt, sync);
}

CUresult array_array(CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes,
                     int pt)
{
    CUDA_MEMCPY3D shape = {.WidthInBytes = bytes,
                           .Height = 1,
                           .Depth = 1,
                           .srcMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .srcArray = src,
                           .dstArray = dst,
                           .srcXInBytes = src_offset,
                           .dstXInBytes = dst_offset};
    return copy_shape(&shape, NULL, pt, 1);
}

DRV2(cuMemcpy, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
     copy_linear(dst, src, bytes, NULL, pt, 1, "UtoU"), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyAsync, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
     copy_linear(dst, src, bytes, stream, pt, 0, "UtoU"), A_X(dst), A_X(src), A_U(bytes),
     A_X(stream))
DRV2(cuMemcpyPeer, _ptds,
     (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes),
     copy_linear(dst, src, bytes, NULL, pt, 1, "DtoD"), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyPeerAsync, _ptsz,
     (CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t bytes,
      CUstream stream),
     copy_linear(dst, src, bytes, stream, pt, 0, "DtoD"), A_X(dst), A_X(src), A_U(bytes),
     A_X(stream))
DRV2(cuMemcpyHtoD_v2, _ptds, (CUdeviceptr dst, const void *src, size_t bytes),
     copy_linear(dst, (uintptr_t)src, bytes, NULL, pt, 1, "HtoD"), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyDtoH_v2, _ptds, (void *dst, CUdeviceptr src, size_t bytes),
     copy_linear((uintptr_t)dst, src, bytes, NULL, pt, 1, "DtoH"), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyDtoD_v2, _ptds, (CUdeviceptr dst, CUdeviceptr src, size_t bytes),
     copy_linear(dst, src, bytes, NULL, pt, 1, "DtoD"), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyHtoDAsync_v2, _ptsz, (CUdeviceptr dst, const void *src, size_t bytes, CUstream stream),
     copy_linear(dst, (uintptr_t)src, bytes, stream, pt, 0, "HtoD"), A_X(dst), A_X(src), A_U(bytes),
     A_X(stream))
DRV2(cuMemcpyDtoHAsync_v2, _ptsz, (void *dst, CUdeviceptr src, size_t bytes, CUstream stream),
     copy_linear((uintptr_t)dst, src, bytes, stream, pt, 0, "DtoH"), A_X(dst), A_X(src), A_U(bytes),
     A_X(stream))
DRV2(cuMemcpyDtoDAsync_v2, _ptsz, (CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream),
     copy_linear(dst, src, bytes, stream, pt, 0, "DtoD"), A_X(dst), A_X(src), A_U(bytes),
     A_X(stream))
DRV2(cuMemcpyDtoA_v2, _ptds, (CUarray dst, size_t offset, CUdeviceptr src, size_t bytes),
     array_linear(dst, offset, src, bytes, NULL, pt, 1, true, false), A_X(dst), A_X(src),
     A_U(bytes))
DRV2(cuMemcpyAtoD_v2, _ptds, (CUdeviceptr dst, CUarray src, size_t offset, size_t bytes),
     array_linear(src, offset, dst, bytes, NULL, pt, 1, false, false), A_X(dst), A_X(src),
     A_U(bytes))
DRV2(cuMemcpyHtoA_v2, _ptds, (CUarray dst, size_t offset, const void *src, size_t bytes),
     array_linear(dst, offset, (uintptr_t)src, bytes, NULL, pt, 1, true, true), A_X(dst), A_X(src),
     A_U(bytes))
DRV2(cuMemcpyAtoH_v2, _ptds, (void *dst, CUarray src, size_t offset, size_t bytes),
     array_linear(src, offset, (uintptr_t)dst, bytes, NULL, pt, 1, false, true), A_X(dst), A_X(src),
     A_U(bytes))
DRV2(cuMemcpyAtoA_v2, _ptds,
     (CUarray dst, size_t dst_offset, CUarray src, size_t src_offset, size_t bytes),
     array_array(dst, dst_offset, src, src_offset, bytes, pt), A_X(dst), A_X(src), A_U(bytes))
DRV2(cuMemcpyHtoAAsync_v2, _ptsz,
     (CUarray dst, size_t offset, const void *src, size_t bytes, CUstream stream),
     array_linear(dst, offset, (uintptr_t)src, bytes, stream, pt, 0, true, true), A_X(dst),
     A_X(src), A_U(bytes), A_X(stream))
DRV2(cuMemcpyAtoHAsync_v2, _ptsz,
     (void *dst, CUarray src, size_t offset, size_t bytes, CUstream stream),
     array_linear(src, offset, (uintptr_t)dst, bytes, stream, pt, 0, false, true), A_X(dst),
     A_X(src), A_U(bytes), A_X(stream))
