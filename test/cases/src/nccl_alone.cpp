/* SPDX-License-Identifier: Apache-2.0 */
/* A rank that is alone, in C++: by g++ with the simulated CUDA's headers, by nvcc with its own. */
#include <cstdio>
#include <nccl.h>

#ifndef SIM_NCCL_INCLUDE_H
#error "not the simulated NCCL's header"
#endif

#ifdef __CUDACC__
__global__ void fill(float *memory)
{
    memory[threadIdx.x] = 1;
}
#endif

int main()
{
    ncclUniqueId id;
    ncclComm_t comm;
    float *memory;
    if (cudaMalloc((void **)&memory, 1024) != cudaSuccess)
        return 1;
#ifdef __CUDACC__
    fill<<<1, 256>>>(memory);
#endif
    if (ncclGetUniqueId(&id) != ncclSuccess || ncclCommInitRank(&comm, 1, id, 0) != ncclSuccess ||
        ncclAllReduce(memory, memory, 256, ncclFloat, ncclSum, comm, 0) != ncclSuccess ||
        cudaDeviceSynchronize() != cudaSuccess || ncclCommDestroy(comm) != ncclSuccess)
        return 2;
    std::printf("%d %d %d %d %d\n", ncclChar, ncclInt, ncclHalf, ncclFloat, ncclDouble);
}
