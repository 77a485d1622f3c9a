/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <string.h>

/* Copies of boxes and of arrays. Widths in arrays are bytes, except in the 3D forms. */

#define PTR(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUmemorytype src_type(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyHostToDevice ? CU_MEMORYTYPE_HOST
           : kind == cudaMemcpyDefault                                    ? CU_MEMORYTYPE_UNIFIED
                                                                          : CU_MEMORYTYPE_DEVICE;
}

static CUmemorytype dst_type(enum cudaMemcpyKind kind)
{
    return kind == cudaMemcpyHostToHost || kind == cudaMemcpyDeviceToHost ? CU_MEMORYTYPE_HOST
           : kind == cudaMemcpyDefault                                    ? CU_MEMORYTYPE_UNIFIED
                                                                          : CU_MEMORYTYPE_DEVICE;
}

struct side {
    void *ptr;
    CUarray array;
    size_t pitch, x, y;
};

/* The one road of all two-dimensional copies. */
static CUresult copy_box(struct side dst, struct side src, size_t width, size_t height,
                         enum cudaMemcpyKind kind, cudaStream_t stream, int pt, int sync)
{
    if ((unsigned)kind > cudaMemcpyDefault)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    if ((!dst.array && dst.pitch < width) || (!src.array && src.pitch < width))
        return (CUresult)cudaErrorInvalidPitchValue;
    if (width == 0 || height == 0)
        return CUDA_SUCCESS;
    CUDA_MEMCPY2D copy = {
        .srcXInBytes = src.x,
        .srcY = src.y,
        .srcMemoryType = src.array ? CU_MEMORYTYPE_ARRAY : src_type(kind),
        .srcHost = src.ptr,
        .srcDevice = PTR(src.ptr),
        .srcArray = src.array,
        .srcPitch = src.pitch,
        .dstXInBytes = dst.x,
        .dstY = dst.y,
        .dstMemoryType = dst.array ? CU_MEMORYTYPE_ARRAY : dst_type(kind),
        .dstHost = dst.ptr,
        .dstDevice = PTR(dst.ptr),
        .dstArray = dst.array,
        .dstPitch = dst.pitch,
        .WidthInBytes = width,
        .Height = height,
    };
    if (sync)
        return D2(cuMemcpy2DUnaligned_v2, cuMemcpy2DUnaligned, 3020, 7000)(&copy);
    return D2(cuMemcpy2DAsync_v2, cuMemcpy2DAsync, 3020, 7000)(&copy, stream);
}

#define FROM_PTR(pointer, pitch) ((struct side){(void *)(uintptr_t)(pointer), NULL, pitch, 0, 0})
#define FROM_ARRAY(array, x, y)  ((struct side){NULL, (CUarray)(uintptr_t)(array), 0, x, y})
#define BOX                      A_X(dst), A_X(src), A_KU("bytes", width *height), A_U(kind)

RT2(cudaMemcpy2D, _ptds,
    (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
     enum cudaMemcpyKind kind),
    copy_box(FROM_PTR(dst, dpitch), FROM_PTR(src, spitch), width, height, kind, NULL, pt, 1), BOX)
RT2(cudaMemcpy2DAsync, _ptsz,
    (void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height,
     enum cudaMemcpyKind kind, cudaStream_t stream),
    copy_box(FROM_PTR(dst, dpitch), FROM_PTR(src, spitch), width, height, kind, stream, pt, 0), BOX,
    A_X(stream))
RT2(cudaMemcpy2DToArray, _ptds,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
     size_t height, enum cudaMemcpyKind kind),
    copy_box(FROM_ARRAY(dst, x, y), FROM_PTR(src, spitch), width, height, kind, NULL, pt, 1), BOX)
RT2(cudaMemcpy2DToArrayAsync, _ptsz,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t spitch, size_t width,
     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
    copy_box(FROM_ARRAY(dst, x, y), FROM_PTR(src, spitch), width, height, kind, stream, pt, 0), BOX,
    A_X(stream))
RT2(cudaMemcpy2DFromArray, _ptds,
    (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
     size_t height, enum cudaMemcpyKind kind),
    copy_box(FROM_PTR(dst, dpitch), FROM_ARRAY(src, x, y), width, height, kind, NULL, pt, 1), BOX)
RT2(cudaMemcpy2DFromArrayAsync, _ptsz,
    (void *dst, size_t dpitch, cudaArray_const_t src, size_t x, size_t y, size_t width,
     size_t height, enum cudaMemcpyKind kind, cudaStream_t stream),
    copy_box(FROM_PTR(dst, dpitch), FROM_ARRAY(src, x, y), width, height, kind, stream, pt, 0), BOX,
    A_X(stream))
RT2(cudaMemcpy2DArrayToArray, _ptds,
    (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
     size_t width, size_t height, enum cudaMemcpyKind kind),
    copy_box(FROM_ARRAY(dst, dx, dy), FROM_ARRAY(src, sx, sy), width, height, kind, NULL, pt, 1),
    BOX)

/* The old linear forms: a run of bytes that begins somewhere in the array. */
#define RUN A_X(dst), A_X(src), A_U(bytes), A_U(kind)

RT2(cudaMemcpyToArray, _ptds,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, enum cudaMemcpyKind kind),
    copy_box(FROM_ARRAY(dst, x, y), FROM_PTR(src, bytes), bytes, 1, kind, NULL, pt, 1), RUN)
RT2(cudaMemcpyToArrayAsync, _ptsz,
    (cudaArray_t dst, size_t x, size_t y, const void *src, size_t bytes, enum cudaMemcpyKind kind,
     cudaStream_t stream),
    copy_box(FROM_ARRAY(dst, x, y), FROM_PTR(src, bytes), bytes, 1, kind, stream, pt, 0), RUN,
    A_X(stream))
RT2(cudaMemcpyFromArray, _ptds,
    (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind),
    copy_box(FROM_PTR(dst, bytes), FROM_ARRAY(src, x, y), bytes, 1, kind, NULL, pt, 1), RUN)
RT2(cudaMemcpyFromArrayAsync, _ptsz,
    (void *dst, cudaArray_const_t src, size_t x, size_t y, size_t bytes, enum cudaMemcpyKind kind,
     cudaStream_t stream),
    copy_box(FROM_PTR(dst, bytes), FROM_ARRAY(src, x, y), bytes, 1, kind, stream, pt, 0), RUN,
    A_X(stream))
RT2(cudaMemcpyArrayToArray, _ptds,
    (cudaArray_t dst, size_t dx, size_t dy, cudaArray_const_t src, size_t sx, size_t sy,
     size_t bytes, enum cudaMemcpyKind kind),
    copy_box(FROM_ARRAY(dst, dx, dy), FROM_ARRAY(src, sx, sy), bytes, 1, kind, NULL, pt, 1), RUN)

static size_t element_bytes(CUarray array)
{
    CUDA_ARRAY3D_DESCRIPTOR desc = {.Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    D(cuArray3DGetDescriptor_v2, cuArray3DGetDescriptor, 3020)(&desc, array);
    unsigned bits = desc.Format == CU_AD_FORMAT_FLOAT ? 32
                    : desc.Format == CU_AD_FORMAT_HALF
                        ? 16
                        : 8u << ((desc.Format & 7) - (desc.Format < 8));
    if (desc.Format >= 8 && desc.Format <= 10)
        bits = 8u << (desc.Format - 8);
    return bits / 8 * desc.NumChannels;
}

/* Positions and widths are elements as soon as one side is an array. */
cudaError_t runtime_shape(const struct cudaMemcpy3DParms *from, CUDA_MEMCPY3D *to)
{
    if (!from || (!from->srcArray && !from->srcPtr.ptr) || (!from->dstArray && !from->dstPtr.ptr))
        return cudaErrorInvalidValue;
    if ((unsigned)from->kind > cudaMemcpyDefault)
        return cudaErrorInvalidMemcpyDirection;
    CUarray src = (CUarray)from->srcArray, dst = (CUarray)from->dstArray;
    size_t element = src ? element_bytes(src) : dst ? element_bytes(dst) : 1;
    *to = (CUDA_MEMCPY3D){
        .srcXInBytes = from->srcPos.x * (src ? element : 1),
        .srcY = from->srcPos.y,
        .srcZ = from->srcPos.z,
        .srcMemoryType = src ? CU_MEMORYTYPE_ARRAY : src_type(from->kind),
        .srcHost = from->srcPtr.ptr,
        .srcDevice = PTR(from->srcPtr.ptr),
        .srcArray = src,
        .srcPitch = from->srcPtr.pitch,
        .srcHeight = from->srcPtr.ysize,
        .dstXInBytes = from->dstPos.x * (dst ? element : 1),
        .dstY = from->dstPos.y,
        .dstZ = from->dstPos.z,
        .dstMemoryType = dst ? CU_MEMORYTYPE_ARRAY : dst_type(from->kind),
        .dstHost = from->dstPtr.ptr,
        .dstDevice = PTR(from->dstPtr.ptr),
        .dstArray = dst,
        .dstPitch = from->dstPtr.pitch,
        .dstHeight = from->dstPtr.ysize,
        .WidthInBytes = from->extent.width * element,
        .Height = from->extent.height,
        .Depth = from->extent.depth,
    };
    return cudaSuccess;
}

static CUresult copy_3d(const struct cudaMemcpy3DParms *from, cudaStream_t stream, int pt, int sync)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = runtime_shape(from, &copy);
    if (error != cudaSuccess)
        return (CUresult)error;
    if (sync)
        return D2(cuMemcpy3D_v2, cuMemcpy3D, 3020, 7000)(&copy);
    return D2(cuMemcpy3DAsync_v2, cuMemcpy3DAsync, 3020, 7000)(&copy, stream);
}

static CUresult copy_3d_peer(const struct cudaMemcpy3DPeerParms *from, cudaStream_t stream, int pt,
                             int sync)
{
    CUDA_MEMCPY3D copy;
    CUDA_MEMCPY3D_PEER peer;
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    struct cudaMemcpy3DParms plain = {.srcArray = from->srcArray,
                                      .srcPos = from->srcPos,
                                      .srcPtr = from->srcPtr,
                                      .dstArray = from->dstArray,
                                      .dstPos = from->dstPos,
                                      .dstPtr = from->dstPtr,
                                      .extent = from->extent,
                                      .kind = cudaMemcpyDeviceToDevice};
    cudaError_t error = runtime_shape(&plain, &copy);
    if (error != cudaSuccess)
        return (CUresult)error;
    memcpy(&peer, &copy, sizeof peer);
    if (sync)
        return D2(cuMemcpy3DPeer, cuMemcpy3DPeer, 4000, 7000)(&peer);
    return D2(cuMemcpy3DPeerAsync, cuMemcpy3DPeerAsync, 4000, 7000)(&peer, stream);
}

#define EXTENT                                                                                     \
    A_KU("elements", copy ? copy->extent.width * copy->extent.height * copy->extent.depth : 0)

RT2(cudaMemcpy3D, _ptds, (const struct cudaMemcpy3DParms *copy), copy_3d(copy, NULL, pt, 1), EXTENT,
    A_KU("kind", copy ? copy->kind : 0))
RT2(cudaMemcpy3DAsync, _ptsz, (const struct cudaMemcpy3DParms *copy, cudaStream_t stream),
    copy_3d(copy, stream, pt, 0), EXTENT, A_KU("kind", copy ? copy->kind : 0), A_X(stream))
RT2(cudaMemcpy3DPeer, _ptds, (const struct cudaMemcpy3DPeerParms *copy),
    copy_3d_peer(copy, NULL, pt, 1), EXTENT)
RT2(cudaMemcpy3DPeerAsync, _ptsz, (const struct cudaMemcpy3DPeerParms *copy, cudaStream_t stream),
    copy_3d_peer(copy, stream, pt, 0), EXTENT, A_X(stream))
