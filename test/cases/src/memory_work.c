/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gets memory on one device and another, by all ways of choosing it: each line is an address, and
 * where the driver has put it.
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

int main(void)
{
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
