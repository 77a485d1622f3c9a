/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcudart.so.12 whose functions do nothing, so that what a call costs is our share of it.
 * stub_busy_ns makes every call take that long instead, for the replay of a launch mix.
 */
#include "stub_cudart.h"

uint64_t stub_busy_ns;
unsigned stub_inner;

static inline cudaError_t done(void)
{
    if (__builtin_expect(stub_busy_ns != 0, 0))
        busy_wait(stub_busy_ns);
    return 0;
}

cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **args, size_t shared,
                             cudaStream_t stream)
{
    (void)kernel, (void)grid, (void)block, (void)args, (void)shared, (void)stream;
    return done();
}

cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    (void)bytes;
    *pointer = &stub_busy_ns;
    return done();
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, cudaStream_t stream)
{
    (void)to, (void)from, (void)bytes, (void)kind, (void)stream;
    return done();
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t stream)
{
    (void)to, (void)value, (void)bytes, (void)stream;
    return done();
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    (void)event, (void)stream;
    return done();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags)
{
    (void)event, (void)stream, (void)flags;
    return done();
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    for (unsigned i = 0; i < stub_inner; i++)
        cuStreamSynchronize(stream);
    return done();
}

void __cudaRegisterFunction(void **module, const char *host, char *device, const char *name,
                            int limit, void *tid, void *bid, void *block, void *grid, int *warp)
{
    (void)module, (void)host, (void)device, (void)name, (void)limit;
    (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
}
