/* SPDX-License-Identifier: Apache-2.0 */
/*
 *   devices  gets memory on one device and another, by all ways of choosing it: each line is an
 *            address, and where the driver has put it
 *   ways     what else says who has which memory, by the runtime and by the driver
 */
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void must(int result, const char *what)
{
    if (result) {
        fprintf(stderr, "%s: %d\n", what, result);
        exit(9);
    }
}
#define MUST(call) must((int)(call), #call)

static int is_deep; /* more contexts are pushed than gpuprof keeps */

static void tell(const void *ptr)
{
    int device = -2;
    MUST(cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                               (CUdeviceptr)(uintptr_t)ptr));
    printf("%p %d\n", ptr, is_deep ? -1 : device);
}

/* Some of each kind. */
static void get(void)
{
    void *ptr;
    CUdeviceptr address;
    size_t pitch;
    struct cudaPitchedPtr pitched;
    MUST(cudaMalloc(&ptr, 4096));
    tell(ptr);
    MUST(cudaMallocPitch(&ptr, &pitch, 100, 10));
    tell(ptr);
    MUST(cudaMalloc3D(&pitched, (struct cudaExtent){64, 4, 2}));
    tell(pitched.ptr);
    MUST(cudaMallocAsync(&ptr, 8192, NULL));
    tell(ptr);
    MUST(cudaHostAlloc(&ptr, 4096, 0));
    tell(ptr);
    MUST(cuMemAlloc(&address, 4096));
    tell((void *)(uintptr_t)address);
    MUST(cuMemAllocAsync(&address, 4096, NULL));
    tell((void *)(uintptr_t)address);
}

static void *of_thread(void *context)
{
    if (context)
        MUST(cuCtxSetCurrent(context));
    get();
    MUST(cudaSetDevice(1));
    get();
    return NULL;
}

static void on_thread(CUcontext context)
{
    pthread_t thread;
    MUST(pthread_create(&thread, NULL, of_thread, context));
    MUST(pthread_join(thread, NULL));
}

#define PAGE ((size_t)2 << 20)

static void physical(void)
{
    CUmemGenericAllocationHandle handle, again, foreign;
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 1}};
    CUdeviceptr ptr;
    size_t before, created, released, unmapped, total;
    int file;
    MUST(cudaSetDevice(1));
    MUST(cuMemGetInfo(&before, &total));
    MUST(cuMemCreate(&handle, PAGE, &prop, 0));
    MUST(cuMemGetInfo(&created, &total));
    MUST(cuMemAddressReserve(&ptr, PAGE, 0, 0, 0));
    MUST(cuMemMap(ptr, PAGE, 0, handle, 0));
    MUST(cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
    MUST(cuMemRelease(handle));
    MUST(cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(ptr + 4096)));
    MUST(cuMemUnmap(ptr, PAGE));
    MUST(cuMemGetInfo(&released, &total));
    MUST(cuMemRelease(again));
    MUST(cuMemGetInfo(&unmapped, &total));
    MUST(cuMemAddressFree(ptr, PAGE));
    if (before - created != PAGE || released != created || unmapped != before)
        exit(7);
    MUST(cuMemImportFromShareableHandle(&foreign, (void *)(uintptr_t)file,
                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR));
    MUST(cuMemRelease(foreign));
    if (cuMemRetainAllocationHandle(&again, &file) == CUDA_SUCCESS ||
        cuMemImportFromShareableHandle(NULL, NULL, CU_MEM_HANDLE_TYPE_NONE) == CUDA_SUCCESS)
        exit(6);
}

static void ways(void)
{
    size_t free, total;
    cudaMemPool_t pool;
    cudaGraph_t graph;
    cudaGraphNode_t node, last;
    unsigned long long desc[16] = {[3] = 4096}; /* its size */
    cudaExternalMemory_t external;
    CUcontext context;
    MUST(cudaMemGetInfo(&free, &total));
    MUST(cudaSetDevice(1));
    MUST(cudaMemGetInfo(&free, &total));
    MUST(cudaDeviceGetMemPool(&pool, 1));
    MUST(cudaDeviceGetDefaultMemPool(&pool, 0));
    MUST(cuDeviceGetMemPool(&pool, 0));
    MUST(cuDeviceGetDefaultMemPool(&pool, 1));
    MUST(cudaImportExternalMemory(&external, (const struct cudaExternalMemoryHandleDesc *)desc));
    MUST(cudaDestroyExternalMemory(external));
    MUST(cudaGraphCreate(&graph, 0));
    struct cudaMemAllocNodeParams params = {
        .poolProps = {.allocType = cudaMemAllocationTypePinned,
                      .location = {cudaMemLocationTypeDevice, 1}},
        .bytesize = 12345};
    MUST(cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    MUST(cudaGraphAddMemFreeNode(&last, graph, &node, 1, params.dptr));
    params.bytesize = 23456;
    MUST(cuGraphAddMemAllocNode(&node, graph, NULL, 0, (CUDA_MEM_ALLOC_NODE_PARAMS *)&params));
    MUST(cuGraphAddMemFreeNode(&last, graph, &node, 1, (CUdeviceptr)(uintptr_t)params.dptr));
    params.poolProps.location.id = 99;
    if (cudaGraphAddMemAllocNode(&node, graph, NULL, 0, &params) == cudaSuccess)
        exit(5);
    MUST(cudaDeviceGraphMemTrim(1));
    MUST(cuDeviceGraphMemTrim(0));
    physical();
    MUST(cuCtxCreate(&context, NULL, 0, 0));
    MUST(cuCtxDestroy(context));
    if (cuCtxDestroy(NULL) == CUDA_SUCCESS)
        exit(4);
    MUST(cudaSetDevice(0));
    MUST(cudaDeviceReset());
    MUST(cuDevicePrimaryCtxReset(1));
}

int main(int argc, char **argv)
{
    if (argc > 1 && strcmp(argv[1], "ways") == 0) {
        ways();
        return 0;
    }
    CUcontext first, second, own, others[6], popped;
    CUgreenCtx green;
    if (cudaSetDevice(99) == cudaSuccess)
        return 8;
    MUST(cudaInitDevice(1, 0, 0));
    get();
    MUST(cudaSetDevice(1));
    get();
    MUST(cuDevicePrimaryCtxRetain(&first, 0));
    MUST(cuDevicePrimaryCtxRetain(&second, 1));
    MUST(cuCtxPushCurrent(first));
    get();
    MUST(cuCtxPushCurrent(second));
    get();
    MUST(cuCtxPopCurrent(&popped));
    get();
    MUST(cuCtxPopCurrent(NULL));
    get();
    MUST(cuCtxSetCurrent(first));
    get();
    MUST(cuCtxCreate(&own, NULL, 0, 1));
    get();
    MUST(cuCtxSetCurrent(first));
    get();
    MUST(cuCtxDestroy(own)); /* which is not current */
    get();
    MUST(cuCtxCreate(&own, NULL, 0, 1));
    MUST(cuCtxDestroy(own)); /* which is */
    get();
    for (int i = 0; i < 6; i++)
        MUST(cuCtxCreate(&others[i], NULL, 0, i & 1));
    is_deep = 1;
    get();
    is_deep = 0;
    for (int i = 0; i < 4; i++)
        MUST(cuCtxPopCurrent(NULL));
    get();
    MUST(cudaSetDevice(0));
    get();
    MUST(cuGreenCtxCreate(&green, NULL, 1, 0));
    MUST(cuCtxFromGreenCtx(&own, green));
    MUST(cuCtxSetCurrent(own));
    get();
    on_thread(NULL);
    on_thread(second);
    on_thread(first);
    return 0;
}
