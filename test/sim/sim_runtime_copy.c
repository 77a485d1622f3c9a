/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Linear copies, copies of symbols, fills. */

#define PTR(pointer) ((CUdeviceptr)(uintptr_t)(pointer))

static CUresult copy(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, int pt)
{
    switch (bytes ? kind : cudaMemcpyDefault) {
    case cudaMemcpyHostToDevice:
        return D2(cuMemcpyHtoD_v2, cuMemcpyHtoD, 3020, 7000)(PTR(dst), src, bytes);
    case cudaMemcpyDeviceToHost:
        return D2(cuMemcpyDtoH_v2, cuMemcpyDtoH, 3020, 7000)(dst, PTR(src), bytes);
    case cudaMemcpyDeviceToDevice:
        return D2(cuMemcpyDtoD_v2, cuMemcpyDtoD, 3020, 7000)(PTR(dst), PTR(src), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        if (bytes == 0)
            return CUDA_SUCCESS;
        return D2(cuMemcpy, cuMemcpy, 4000, 7000)(PTR(dst), PTR(src), bytes);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

static CUresult copy_async(void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind,
                           cudaStream_t stream, int pt)
{
    switch (bytes ? kind : cudaMemcpyDefault) {
    case cudaMemcpyHostToDevice:
        return D2(cuMemcpyHtoDAsync_v2, cuMemcpyHtoDAsync, 3020, 7000)(PTR(dst), src, bytes,
                                                                       stream);
    case cudaMemcpyDeviceToHost:
        return D2(cuMemcpyDtoHAsync_v2, cuMemcpyDtoHAsync, 3020, 7000)(dst, PTR(src), bytes,
                                                                       stream);
    case cudaMemcpyDeviceToDevice:
        return D2(cuMemcpyDtoDAsync_v2, cuMemcpyDtoDAsync, 3020, 7000)(PTR(dst), PTR(src), bytes,
                                                                       stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault:
        if (bytes == 0)
            return CUDA_SUCCESS;
        return D2(cuMemcpyAsync, cuMemcpyAsync, 4000, 7000)(PTR(dst), PTR(src), bytes, stream);
    }
    return (CUresult)cudaErrorInvalidMemcpyDirection;
}

/* Where `bytes` of the symbol begin, from `offset` on. */
static CUresult symbol_part(const void *symbol, size_t offset, size_t bytes, CUdeviceptr *part)
{
    CUdeviceptr ptr = 0;
    size_t have = 0;
    cudaError_t error = runtime_symbol(symbol, &ptr, &have);
    if (error != cudaSuccess)
        return (CUresult)error;
    *part = ptr + offset;
    return offset + bytes > have || offset + bytes < bytes ? CUDA_ERROR_INVALID_VALUE
                                                           : CUDA_SUCCESS;
}

static CUresult to_symbol(const void *symbol, const void *src, size_t bytes, size_t offset,
                          enum cudaMemcpyKind kind, cudaStream_t stream, int pt, int sync)
{
    CUdeviceptr ptr = 0;
    CUresult result = symbol_part(symbol, offset, bytes, &ptr);
    if (result != CUDA_SUCCESS)
        return result;
    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    void *dst = (void *)(uintptr_t)ptr;
    return sync ? copy(dst, src, bytes, kind, pt) : copy_async(dst, src, bytes, kind, stream, pt);
}

static CUresult from_symbol(void *dst, const void *symbol, size_t bytes, size_t offset,
                            enum cudaMemcpyKind kind, cudaStream_t stream, int pt, int sync)
{
    CUdeviceptr ptr = 0;
    CUresult result = symbol_part(symbol, offset, bytes, &ptr);
    if (result != CUDA_SUCCESS)
        return result;
    if (kind != cudaMemcpyDeviceToHost && kind != cudaMemcpyDeviceToDevice &&
        kind != cudaMemcpyDefault)
        return (CUresult)cudaErrorInvalidMemcpyDirection;
    const void *src = (const void *)(uintptr_t)ptr;
    return sync ? copy(dst, src, bytes, kind, pt) : copy_async(dst, src, bytes, kind, stream, pt);
}

#define COPY_ARGS A_X(dst), A_X(src), A_U(bytes), A_U(kind)

RT2(cudaMemcpy, _ptds, (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
    copy(dst, src, bytes, kind, pt), COPY_ARGS)
RT2(cudaMemcpyAsync, _ptsz,
    (void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind, cudaStream_t stream),
    copy_async(dst, src, bytes, kind, stream, pt), COPY_ARGS, A_X(stream))
RT2(cudaMemcpyToSymbol, _ptds,
    (const void *symbol, const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
    to_symbol(symbol, src, bytes, offset, kind, NULL, pt, 1), A_X(symbol), A_X(src), A_U(bytes),
    A_U(kind))
RT2(cudaMemcpyToSymbolAsync, _ptsz,
    (const void *symbol, const void *src, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
     cudaStream_t stream),
    to_symbol(symbol, src, bytes, offset, kind, stream, pt, 0), A_X(symbol), A_X(src), A_U(bytes),
    A_U(kind), A_X(stream))
RT2(cudaMemcpyFromSymbol, _ptds,
    (void *dst, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind),
    from_symbol(dst, symbol, bytes, offset, kind, NULL, pt, 1), A_X(dst), A_X(symbol), A_U(bytes),
    A_U(kind))
RT2(cudaMemcpyFromSymbolAsync, _ptsz,
    (void *dst, const void *symbol, size_t bytes, size_t offset, enum cudaMemcpyKind kind,
     cudaStream_t stream),
    from_symbol(dst, symbol, bytes, offset, kind, stream, pt, 0), A_X(dst), A_X(symbol), A_U(bytes),
    A_U(kind), A_X(stream))

static CUresult symbol_address(void **ptr, const void *symbol)
{
    CUdeviceptr address = 0;
    cudaError_t error = ptr ? runtime_symbol(symbol, &address, NULL) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        *ptr = (void *)(uintptr_t)address;
    return (CUresult)error;
}

RT(cudaGetSymbolAddress, (void **ptr, const void *symbol), symbol_address(ptr, symbol),
   A_OUT("ptr", ptr), A_X(symbol))
RT(cudaGetSymbolSize, (size_t * bytes, const void *symbol),
   bytes ? runtime_symbol(symbol, NULL, bytes) : cudaErrorInvalidValue, A_X(symbol))

/* Peers are told by device; the copy itself needs no contexts here. */
RT(cudaMemcpyPeer, (void *dst, int to, const void *src, int from, size_t bytes),
   D(cuMemcpyPeer, cuMemcpyPeer, 4000)(PTR(dst), NULL, PTR(src), NULL, bytes), A_X(dst), A_X(src),
   A_U(bytes))
RT(cudaMemcpyPeerAsync,
   (void *dst, int to, const void *src, int from, size_t bytes, cudaStream_t stream),
   D(cuMemcpyPeerAsync, cuMemcpyPeerAsync, 4000)(PTR(dst), NULL, PTR(src), NULL, bytes, stream),
   A_X(dst), A_X(src), A_U(bytes), A_X(stream))

static CUresult fill_2d(void *dst, size_t pitch, int value, size_t width, size_t height, int pt)
{
    if (width > pitch)
        return CUDA_ERROR_INVALID_VALUE;
    return D2(cuMemsetD2D8_v2, cuMemsetD2D8, 3020, 7000)(PTR(dst), pitch, (unsigned char)value,
                                                         width, height);
}

static CUresult fill_2d_async(void *dst, size_t pitch, int value, size_t width, size_t height,
                              cudaStream_t stream, int pt)
{
    if (width > pitch)
        return CUDA_ERROR_INVALID_VALUE;
    return D2(cuMemsetD2D8Async, cuMemsetD2D8Async, 3020,
              7000)(PTR(dst), pitch, (unsigned char)value, width, height, stream);
}

RT2(cudaMemset, _ptds, (void *dst, int value, size_t bytes),
    D2(cuMemsetD8_v2, cuMemsetD8, 3020, 7000)(PTR(dst), (unsigned char)value, bytes), A_X(dst),
    A_U(value), A_U(bytes))
RT2(cudaMemsetAsync, _ptsz, (void *dst, int value, size_t bytes, cudaStream_t stream),
    D2(cuMemsetD8Async, cuMemsetD8Async, 3020, 7000)(PTR(dst), (unsigned char)value, bytes, stream),
    A_X(dst), A_U(value), A_U(bytes), A_X(stream))
RT2(cudaMemset2D, _ptds, (void *dst, size_t pitch, int value, size_t width, size_t height),
    fill_2d(dst, pitch, value, width, height, pt), A_X(dst), A_U(value),
    A_KU("bytes", width *height))
RT2(cudaMemset2DAsync, _ptsz,
    (void *dst, size_t pitch, int value, size_t width, size_t height, cudaStream_t stream),
    fill_2d_async(dst, pitch, value, width, height, stream, pt), A_X(dst), A_U(value),
    A_KU("bytes", width *height), A_X(stream))

/* Slices lie behind one another with ysize rows each: one box if it takes whole slices. */
static CUresult fill_3d(struct cudaPitchedPtr dst, int value, struct cudaExtent extent,
                        cudaStream_t stream, int pt, int sync)
{
    CUresult result = CUDA_SUCCESS;
    size_t rows = extent.height == dst.ysize ? extent.height * extent.depth : extent.height;
    size_t count = rows == extent.height ? extent.depth : 1;
    for (size_t z = 0; z < count && result == CUDA_SUCCESS; z++) {
        void *at = (char *)dst.ptr + z * dst.pitch * dst.ysize;
        result = sync ? fill_2d(at, dst.pitch, value, extent.width, rows, pt)
                      : fill_2d_async(at, dst.pitch, value, extent.width, rows, stream, pt);
    }
    return result;
}

#define BYTES_3D A_KU("bytes", extent.width *extent.height *extent.depth)

RT2(cudaMemset3D, _ptds, (struct cudaPitchedPtr dst, int value, struct cudaExtent extent),
    fill_3d(dst, value, extent, NULL, pt, 1), A_KX("dst", dst.ptr), A_U(value), BYTES_3D)
RT2(cudaMemset3DAsync, _ptsz,
    (struct cudaPitchedPtr dst, int value, struct cudaExtent extent, cudaStream_t stream),
    fill_3d(dst, value, extent, stream, pt, 0), A_KX("dst", dst.ptr), A_U(value), BYTES_3D,
    A_X(stream))
