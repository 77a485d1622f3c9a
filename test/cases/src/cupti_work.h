/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_CUPTI_WORK_H
#define TEST_CUPTI_WORK_H

/* Work for the programs that are traced by CUPTI: a bit of everything that has a record. */

#include <cuda.h>
#include <string.h>

#include "kernels.h"

#define CUPTI_KERNELS(X) X(gemm, "_Z4gemmPKfS0_Pfi") X(adam, "_Z4adamPfS_S_fi")
KERNELS_DEFINE(CUPTI_KERNELS)

enum { WORK_BYTES = 1 << 16, WORK_LAUNCHES = 200 };

static void cupti_work_init(void)
{
    cuInit(0);
}

static void cupti_work_launch(void)
{
    launch(gemm, 3, 64, 128, NULL);
}

static void cupti_work_launches(void)
{
    for (unsigned i = 0; i < WORK_LAUNCHES; i++)
        launch(i % 3 ? gemm : adam, 1 + i, 32, 0, NULL);
}

static void cupti_work_sync(void)
{
    cudaDeviceSynchronize();
}

static void cupti_work_destroy(void)
{
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    cudaStreamDestroy(stream);
}

/* Two kernels, a fill and a copy, captured and launched twice. */
static void cupti_work_graph(void)
{
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    void *memory;
    cudaMalloc(&memory, WORK_BYTES);
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal);
    launch(gemm, 7, 128, 0, stream);
    cudaMemsetAsync(memory, 1, WORK_BYTES, stream);
    cudaMemcpyAsync((char *)memory + 4096, memory, 4096, cudaMemcpyDeviceToDevice, stream);
    launch(adam, 9, 128, 0, stream);
    cudaStreamEndCapture(stream, &graph);
    cudaGraphInstantiateWithFlags(&exec, graph, 0);
    cudaGraphLaunch(exec, stream);
    cudaGraphLaunch(exec, stream);
    cudaStreamSynchronize(stream);
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
    cudaStreamDestroy(stream);
    cudaFree(memory);
}

static void cupti_work_copies(cudaStream_t stream)
{
    static char host[WORK_BYTES];
    void *first, *second;
    int count = 0;
    cudaMalloc(&first, WORK_BYTES);
    cudaMemset(first, 7, WORK_BYTES);
    cudaMemcpy(first, host, WORK_BYTES, cudaMemcpyHostToDevice);
    cudaMemcpyAsync(host, first, 4096, cudaMemcpyDeviceToHost, stream);
    cudaMemsetAsync(first, 3, 4096, stream);
    cudaGetDeviceCount(&count);
    if (count > 1) {
        cudaSetDevice(1);
        cudaMalloc(&second, WORK_BYTES);
        cudaSetDevice(0);
        cudaMemcpyPeer(second, 1, first, 0, 8192);
        cudaFree(second);
    }
    cudaFree(first);
}

static void cupti_work_pools(cudaStream_t stream)
{
    struct cudaMemPoolProps props;
    cudaMemPool_t pool;
    void *memory;
    memset(&props, 0, sizeof props);
    props.allocType = cudaMemAllocationTypePinned;
    props.location.type = cudaMemLocationTypeDevice;
    cudaMemPoolCreate(&pool, &props);
    cudaMallocFromPoolAsync(&memory, 2048, pool, stream);
    cudaFreeAsync(memory, stream);
    cudaStreamSynchronize(stream);
    cudaMemPoolTrimTo(pool, 512);
    cudaMemPoolDestroy(pool);
    cudaMallocHost(&memory, 1024);
    cudaFreeHost(memory);
}

static void cupti_work_all(void)
{
    cudaStream_t stream;
    cudaEvent_t event;
    CUmodule module;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    for (unsigned i = 0; i < 10; i++)
        launch(i % 2 ? gemm : adam, 4 + i, 32 + i, i, i % 3 ? stream : NULL);
    cudaEventRecord(event, stream);
    cudaStreamWaitEvent(NULL, event, 0);
    cupti_work_copies(stream);
    cupti_work_pools(stream);
    cudaEventSynchronize(event);
    cuModuleLoadData(&module, "//\n.version 8.0\n");
    cuModuleUnload(module);
    cupti_work_graph();
    cudaDeviceSynchronize();
    cudaEventDestroy(event);
    cudaStreamDestroy(stream);
}

static void *cupti_work_thread(void *unused)
{
    (void)unused;
    cupti_work_launches();
    cudaDeviceSynchronize();
    return NULL;
}

#endif
