/* SPDX-License-Identifier: Apache-2.0 */
/* The few runtime functions that the benches call, declared as CUDA 12 does. */
#ifndef GPUPROF_BENCH_STUB_CUDART_H
#define GPUPROF_BENCH_STUB_CUDART_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef int cudaError_t;
typedef void *cudaStream_t;
typedef void *cudaEvent_t;
typedef struct {
    unsigned x, y, z;
} dim3;

extern uint64_t stub_busy_ns; /* how long every call takes; one thread only */
extern unsigned stub_inner;   /* driver calls that cudaStreamSynchronize makes */

int cuStreamSynchronize(cudaStream_t stream);

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaMalloc(void **pointer, size_t bytes);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind,
                            cudaStream_t stream);
cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp);

static inline uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void busy_wait(uint64_t ns)
{
    uint64_t end = monotonic_ns() + ns;
    while (monotonic_ns() < end)
        ;
}

#endif
