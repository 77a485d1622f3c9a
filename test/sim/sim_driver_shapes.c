/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"

/* Copies described by a structure, and batches of copies. */

static CUDA_MEMCPY3D shape_of_2d(const CUDA_MEMCPY2D *copy)
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

static CUresult copy_2d(const CUDA_MEMCPY2D *copy, CUstream stream, int pt, int sync)
{
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMCPY3D shape = shape_of_2d(copy);
    return copy_shape(&shape, stream, pt, sync);
}

static CUresult copy_3d(const CUDA_MEMCPY3D *copy, CUstream stream, int pt, int sync)
{
    return copy ? copy_shape(copy, stream, pt, sync) : CUDA_ERROR_INVALID_VALUE;
}

/* The two structures differ only in what the reserved words mean. */
static CUresult copy_3d_peer(const CUDA_MEMCPY3D_PEER *copy, CUstream stream, int pt, int sync)
{
    CUDA_MEMCPY3D shape;
    _Static_assert(sizeof shape == sizeof *copy, "a peer copy has the layout of a copy");
    if (!copy)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(&shape, copy, sizeof shape);
    return copy_shape(&shape, stream, pt, sync);
}

#define COPY_BYTES(copy, depth) A_KU("bytes", copy ? copy->WidthInBytes * copy->Height *(depth) : 0)

DRV2(cuMemcpy2D_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy_2d(copy, NULL, pt, 1),
     COPY_BYTES(copy, 1))
DRV2(cuMemcpy2DUnaligned_v2, _ptds, (const CUDA_MEMCPY2D *copy), copy_2d(copy, NULL, pt, 1),
     COPY_BYTES(copy, 1))
DRV2(cuMemcpy2DAsync_v2, _ptsz, (const CUDA_MEMCPY2D *copy, CUstream stream),
     copy_2d(copy, stream, pt, 0), COPY_BYTES(copy, 1), A_X(stream))
DRV2(cuMemcpy3D_v2, _ptds, (const CUDA_MEMCPY3D *copy), copy_3d(copy, NULL, pt, 1),
     COPY_BYTES(copy, copy->Depth))
DRV2(cuMemcpy3DAsync_v2, _ptsz, (const CUDA_MEMCPY3D *copy, CUstream stream),
     copy_3d(copy, stream, pt, 0), COPY_BYTES(copy, copy->Depth), A_X(stream))
DRV2(cuMemcpy3DPeer, _ptds, (const CUDA_MEMCPY3D_PEER *copy), copy_3d_peer(copy, NULL, pt, 1),
     COPY_BYTES(copy, copy->Depth))
DRV2(cuMemcpy3DPeerAsync, _ptsz, (const CUDA_MEMCPY3D_PEER *copy, CUstream stream),
     copy_3d_peer(copy, stream, pt, 0), COPY_BYTES(copy, copy->Depth), A_X(stream))

/* Batches refuse the default stream, as documented. */
static CUresult batch_check(CUstream stream, const void *a, const void *b, size_t count)
{
    if (!a || !b || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (!stream || stream == CU_STREAM_LEGACY)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult copy_batch(CUdeviceptr *dsts, CUdeviceptr *srcs, const size_t *sizes, size_t count,
                           size_t *fail, CUstream stream, int pt)
{
    CUresult result = batch_check(stream, dsts, srcs, count);
    if (fail)
        *fail = SIZE_MAX;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        result = copy_linear(dsts[i], srcs[i], sizes[i], stream, pt, 0, "UtoU");
        if (result != CUDA_SUCCESS && fail)
            *fail = i;
    }
    return result;
}

static uint64_t sum(const size_t *sizes, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; sizes && i < count; i++)
        bytes += sizes[i];
    return bytes;
}

static void operand_place(const CUmemcpy3DOperand *operand, CUDA_MEMCPY3D *shape, bool is_dst)
{
    bool is_array = operand->type == CU_MEMCPY_OPERAND_TYPE_ARRAY;
    CUmemorytype type = is_array ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_UNIFIED;
    size_t row = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : shape->WidthInBytes;
    size_t layer = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : shape->Height;
    if (is_dst) {
        shape->dstMemoryType = type;
        shape->dstDevice = is_array ? 0 : operand->op.ptr.ptr;
        shape->dstArray = is_array ? operand->op.array.array : NULL;
        shape->dstPitch = row;
        shape->dstHeight = layer;
    } else {
        shape->srcMemoryType = type;
        shape->srcDevice = is_array ? 0 : operand->op.ptr.ptr;
        shape->srcArray = is_array ? operand->op.array.array : NULL;
        shape->srcPitch = row;
        shape->srcHeight = layer;
    }
}

static CUresult copy_3d_batch(size_t count, const CUDA_MEMCPY3D_BATCH_OP *list, size_t *fail,
                              CUstream stream, int pt)
{
    CUresult result = batch_check(stream, list, list, count);
    if (fail)
        *fail = SIZE_MAX;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        CUDA_MEMCPY3D shape = {.WidthInBytes = list[i].extent.width,
                               .Height = list[i].extent.height,
                               .Depth = list[i].extent.depth};
        operand_place(&list[i].dst, &shape, true);
        operand_place(&list[i].src, &shape, false);
        result = copy_shape(&shape, stream, pt, 0);
        if (result != CUDA_SUCCESS && fail)
            *fail = i;
    }
    return result;
}

DRV2(cuMemcpyBatchAsync, _ptsz,
     (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
      size_t *attr_index, size_t attr_count, size_t *fail, CUstream stream),
     copy_batch(dsts, srcs, sizes, count, fail, stream, pt), A_U(count),
     A_KU("bytes", sum(sizes, count)), A_X(stream))
DRV2(cuMemcpyBatchAsync_v2, _ptsz,
     (CUdeviceptr * dsts, CUdeviceptr *srcs, size_t *sizes, size_t count, CUmemcpyAttributes *attrs,
      size_t *attr_index, size_t attr_count, CUstream stream),
     copy_batch(dsts, srcs, sizes, count, NULL, stream, pt), A_U(count),
     A_KU("bytes", sum(sizes, count)), A_X(stream))
DRV2(cuMemcpy3DBatchAsync, _ptsz,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, size_t *fail, unsigned long long flags,
      CUstream stream),
     copy_3d_batch(count, list, fail, stream, pt), A_U(count), A_X(stream))
DRV2(cuMemcpy3DBatchAsync_v2, _ptsz,
     (size_t count, CUDA_MEMCPY3D_BATCH_OP *list, unsigned long long flags, CUstream stream),
     copy_3d_batch(count, list, NULL, stream, pt), A_U(count), A_X(stream))

/* Prefetches, discards and the like take time and move nothing. */
static CUresult prefetch(CUdeviceptr ptr, size_t bytes, CUstream handle, int pt)
{
    struct memory memory;
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!memory_find(ptr, &memory) || memory.kind != MEMORY_MANAGED || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (capture_take(stream, CU_GRAPH_NODE_TYPE_EMPTY, NULL, &result))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    struct work work = {.what = "prefetch", .duration_ns = copy_duration(bytes, false)};
    work_enqueue(stream, &work);
    if (sim_log_gpu_wanted()) {
        const struct sim_arg args[] = {A_U(bytes)};
        work_log(stream, &work, args, 1);
    }
    return CUDA_SUCCESS;
}

static CUresult prefetch_batch(const CUdeviceptr *ptrs, const size_t *sizes, size_t count,
                               CUstream stream, int pt)
{
    CUresult result = batch_check(stream, ptrs, sizes, count);
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++)
        result = prefetch(ptrs[i], sizes[i], stream, pt);
    return result;
}

DRV2(cuMemPrefetchAsync, _ptsz, (CUdeviceptr ptr, size_t bytes, CUdevice device, CUstream stream),
     prefetch(ptr, bytes, stream, pt), A_X(ptr), A_U(bytes), A_X(stream))
DRV2(cuMemPrefetchAsync_v2, _ptsz,
     (CUdeviceptr ptr, size_t bytes, CUmemLocation location, unsigned flags, CUstream stream),
     prefetch(ptr, bytes, stream, pt), A_X(ptr), A_U(bytes), A_X(stream))
DRV2(cuMemPrefetchBatchAsync, _ptsz,
     (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locations, size_t *index,
      size_t location_count, unsigned long long flags, CUstream stream),
     prefetch_batch(ptrs, sizes, count, stream, pt), A_U(count), A_KU("bytes", sum(sizes, count)),
     A_X(stream))
DRV2(cuMemDiscardBatchAsync, _ptsz,
     (CUdeviceptr * ptrs, size_t *sizes, size_t count, unsigned long long flags, CUstream stream),
     prefetch_batch(ptrs, sizes, count, stream, pt), A_U(count), A_KU("bytes", sum(sizes, count)),
     A_X(stream))
DRV2(cuMemDiscardAndPrefetchBatchAsync, _ptsz,
     (CUdeviceptr * ptrs, size_t *sizes, size_t count, CUmemLocation *locations, size_t *index,
      size_t location_count, unsigned long long flags, CUstream stream),
     prefetch_batch(ptrs, sizes, count, stream, pt), A_U(count), A_KU("bytes", sum(sizes, count)),
     A_X(stream))
DRV2(cuMemBatchDecompressAsync, _ptsz,
     (CUmemDecompressParams * params, size_t count, unsigned flags, size_t *fail, CUstream stream),
     CUDA_ERROR_NOT_SUPPORTED, A_U(count), A_X(stream))
