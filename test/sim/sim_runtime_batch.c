/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

/* Where one name has two ABIs: the forms of CUDA 12 and of CUDA 13. */

#define PTR(pointer)       ((CUdeviceptr)(uintptr_t)(pointer))
#define LOCATION(location) (*(CUmemLocation *)&(location))

static uint64_t sum(const size_t *sizes, size_t count)
{
    uint64_t bytes = 0;
    for (size_t i = 0; sizes && i < count; i++)
        bytes += sizes[i];
    return bytes;
}

#define BATCH_ARGS A_U(count), A_KU("bytes", sum(sizes, count)), A_X(stream)

#if SIM_CUDART_MAJOR == 12

RT2(cudaMemcpyBatchAsync, _ptsz,
    (void **dsts, void **srcs, size_t *sizes, size_t count, struct cudaMemcpyAttributes *attrs,
     size_t *attr_index, size_t attr_count, size_t *fail, cudaStream_t stream),
    D2(cuMemcpyBatchAsync, cuMemcpyBatchAsync, 12080,
       12080)((CUdeviceptr *)dsts, (CUdeviceptr *)srcs, sizes, count, (CUmemcpyAttributes *)attrs,
              attr_index, attr_count, fail, stream),
    BATCH_ARGS)
RT2(cudaMemcpy3DBatchAsync, _ptsz,
    (size_t count, struct cudaMemcpy3DBatchOp *list, size_t *fail, unsigned long long flags,
     cudaStream_t stream),
    D2(cuMemcpy3DBatchAsync, cuMemcpy3DBatchAsync, 12080,
       12080)(count, (CUDA_MEMCPY3D_BATCH_OP *)list, fail, flags, stream),
    A_U(count), A_X(stream))

static CUmemLocation location_of(int device)
{
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    if (device < 0)
        location = (CUmemLocation){CU_MEM_LOCATION_TYPE_HOST, 0};
    return location;
}

RT2(cudaMemPrefetchAsync, _ptsz, (const void *ptr, size_t bytes, int device, cudaStream_t stream),
    D2(cuMemPrefetchAsync, cuMemPrefetchAsync, 8000, 8000)(PTR(ptr), bytes, device, stream),
    A_X(ptr), A_U(bytes), {"device", 'd', (uint64_t)(int64_t)device, 0, 0}, A_X(stream))
RT2(cudaMemPrefetchAsync_v2, _ptsz,
    (const void *ptr, size_t bytes, struct cudaMemLocation location, unsigned flags,
     cudaStream_t stream),
    D2(cuMemPrefetchAsync_v2, cuMemPrefetchAsync, 12020, 12020)(PTR(ptr), bytes, LOCATION(location),
                                                                flags, stream),
    A_X(ptr), A_U(bytes), A_X(stream))
RT(cudaMemAdvise, (const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, int device),
   D(cuMemAdvise_v2, cuMemAdvise, 12020)(PTR(ptr), bytes, (CUmem_advise)advice,
                                         location_of(device)),
   A_X(ptr), A_U(bytes), A_U(advice))
RT(cudaMemAdvise_v2,
   (const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
   D(cuMemAdvise_v2, cuMemAdvise, 12020)(PTR(ptr), bytes, (CUmem_advise)advice, LOCATION(location)),
   A_X(ptr), A_U(bytes), A_U(advice))

#else

RT2(cudaMemcpyBatchAsync, _ptsz,
    (void *const *dsts, const void *const *srcs, const size_t *sizes, size_t count,
     struct cudaMemcpyAttributes *attrs, size_t *attr_index, size_t attr_count,
     cudaStream_t stream),
    D2(cuMemcpyBatchAsync_v2, cuMemcpyBatchAsync, 13000,
       13000)((CUdeviceptr *)(uintptr_t)dsts, (CUdeviceptr *)(uintptr_t)srcs,
              (size_t *)(uintptr_t)sizes, count, (CUmemcpyAttributes *)attrs, attr_index,
              attr_count, stream),
    BATCH_ARGS)
RT2(cudaMemcpy3DBatchAsync, _ptsz,
    (size_t count, struct cudaMemcpy3DBatchOp *list, unsigned long long flags, cudaStream_t stream),
    D2(cuMemcpy3DBatchAsync_v2, cuMemcpy3DBatchAsync, 13000,
       13000)(count, (CUDA_MEMCPY3D_BATCH_OP *)list, flags, stream),
    A_U(count), A_X(stream))
RT2(cudaMemPrefetchAsync, _ptsz,
    (const void *ptr, size_t bytes, struct cudaMemLocation location, unsigned flags,
     cudaStream_t stream),
    D2(cuMemPrefetchAsync_v2, cuMemPrefetchAsync, 12020, 12020)(PTR(ptr), bytes, LOCATION(location),
                                                                flags, stream),
    A_X(ptr), A_U(bytes), A_X(stream))
RT2(cudaMemPrefetchBatchAsync, _ptsz,
    (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locations, size_t *index,
     size_t location_count, unsigned long long flags, cudaStream_t stream),
    D2(cuMemPrefetchBatchAsync, cuMemPrefetchBatchAsync, 13000,
       13000)((CUdeviceptr *)ptrs, sizes, count, (CUmemLocation *)locations, index, location_count,
              flags, stream),
    BATCH_ARGS)
RT2(cudaMemDiscardBatchAsync, _ptsz,
    (void **ptrs, size_t *sizes, size_t count, unsigned long long flags, cudaStream_t stream),
    D2(cuMemDiscardBatchAsync, cuMemDiscardBatchAsync, 13000, 13000)((CUdeviceptr *)ptrs, sizes,
                                                                     count, flags, stream),
    BATCH_ARGS)
RT2(cudaMemDiscardAndPrefetchBatchAsync, _ptsz,
    (void **ptrs, size_t *sizes, size_t count, struct cudaMemLocation *locations, size_t *index,
     size_t location_count, unsigned long long flags, cudaStream_t stream),
    D2(cuMemDiscardAndPrefetchBatchAsync, cuMemDiscardAndPrefetchBatchAsync, 13000,
       13000)((CUdeviceptr *)ptrs, sizes, count, (CUmemLocation *)locations, index, location_count,
              flags, stream),
    BATCH_ARGS)
RT(cudaMemAdvise,
   (const void *ptr, size_t bytes, enum cudaMemoryAdvise advice, struct cudaMemLocation location),
   D(cuMemAdvise_v2, cuMemAdvise, 12020)(PTR(ptr), bytes, (CUmem_advise)advice, LOCATION(location)),
   A_X(ptr), A_U(bytes), A_U(advice))

#endif

RT(cudaMemRangeGetAttribute,
   (void *data, size_t data_bytes, enum cudaMemRangeAttribute attribute, const void *ptr,
    size_t bytes),
   D(cuMemRangeGetAttribute, cuMemRangeGetAttribute,
     8000)(data, data_bytes, (CUmem_range_attribute)attribute, PTR(ptr), bytes),
   A_X(ptr), A_U(bytes))
