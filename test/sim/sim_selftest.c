/* SPDX-License-Identifier: Apache-2.0 */

/* Asserts what the simulated CUDA promises; prints what failed, returns 1 if anything did. */

#include <cuda.h>
#include <cuda_runtime.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../programs/kernels.h"

#define KERNELS(X) X(gemm, "_Z4gemmPKfS0_Pfi") X(softmax, "_Z7softmaxPfi")
KERNELS_DEFINE(KERNELS)

static int failure_count;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                                 \
            failure_count++;                                                                       \
        }                                                                                          \
    } while (0)
#define OK(call) CHECK((call) == 0)
#define IS(call, code)                                                                             \
    do {                                                                                           \
        int got_ = (int)(call);                                                                    \
        if (got_ != (int)(code)) {                                                                 \
            printf("%s:%d: %s is %d, not %s\n", __FILE__, __LINE__, #call, got_, #code);           \
            failure_count++;                                                                       \
        }                                                                                          \
    } while (0)

static double now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void test_device(void)
{
    int count = 0, version = 0, device = -1;
    struct cudaDeviceProp prop;
    OK(cudaGetDeviceCount(&count));
    CHECK(count == 2);
    OK(cudaGetDeviceProperties(&prop, 1));
    CHECK(prop.totalGlobalMem == 8ull << 30 && prop.multiProcessorCount == 132);
    OK(cudaDriverGetVersion(&version));
    CHECK(version == 13000);
    OK(cudaRuntimeGetVersion(&version));
    CHECK(version / 1000 == SIM_CUDART_MAJOR);
    IS(cudaSetDevice(7), cudaErrorInvalidDevice);
    IS(cudaGetLastError(), cudaErrorInvalidDevice);
    IS(cudaGetLastError(), cudaSuccess);
    OK(cudaSetDevice(1));
    OK(cudaGetDevice(&device));
    CHECK(device == 1);
    OK(cudaSetDevice(0));
    CHECK(strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
}

static void test_memory(void)
{
    char host[256], back[256];
    void *a = NULL, *b = NULL, *big = NULL;
    size_t free_before, free_after, total;
    struct cudaPointerAttributes attributes;
    for (int i = 0; i < 256; i++)
        host[i] = (char)i;
    OK(cudaMemGetInfo(&free_before, &total));
    OK(cudaMalloc(&a, 256));
    OK(cudaMalloc(&b, 256));
    OK(cudaMemGetInfo(&free_after, &total));
    CHECK(free_before - free_after == 512);
    OK(cudaMemcpy(a, host, 256, cudaMemcpyHostToDevice));
    OK(cudaMemcpy(b, a, 256, cudaMemcpyDeviceToDevice));
    OK(cudaMemset((char *)b + 8, 0x5a, 8));
    OK(cudaMemcpy(back, b, 256, cudaMemcpyDefault));
    CHECK(back[7] == 7 && back[8] == 0x5a && back[15] == 0x5a && back[16] == 16);
    IS(cudaMemcpy(back, b, 256, (enum cudaMemcpyKind)9), cudaErrorInvalidMemcpyDirection);
    IS(cudaMalloc(&big, 9ull << 30), cudaErrorMemoryAllocation);
    OK(cudaMalloc(&big, 6ull << 30));
    OK(cudaFree(big));
    IS(cudaFree((char *)a + 8), cudaErrorInvalidValue);
    OK(cudaPointerGetAttributes(&attributes, a));
    CHECK(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
    OK(cudaPointerGetAttributes(&attributes, host));
    CHECK(attributes.type == cudaMemoryTypeUnregistered);
    OK(cudaFree(a));
    OK(cudaFree(b));
    OK(cudaFree(NULL));
    IS(cudaFree(a), cudaErrorInvalidValue);
    cudaGetLastError();
}

static void test_shapes(void)
{
    enum { WIDTH = 24, HEIGHT = 5 };
    unsigned char host[HEIGHT][WIDTH], back[HEIGHT][WIDTH];
    size_t pitch = 0;
    void *ptr = NULL;
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc desc = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    for (int y = 0; y < HEIGHT; y++)
        for (int x = 0; x < WIDTH; x++)
            host[y][x] = (unsigned char)(y * WIDTH + x);
    OK(cudaMallocPitch(&ptr, &pitch, WIDTH, HEIGHT));
    CHECK(pitch >= WIDTH);
    OK(cudaMemcpy2D(ptr, pitch, host, WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice));
    OK(cudaMallocArray(&array, &desc, WIDTH, HEIGHT, 0));
    OK(cudaMemcpy2DToArray(array, 0, 0, ptr, pitch, WIDTH, HEIGHT, cudaMemcpyDeviceToDevice));
    memset(back, 0, sizeof back);
    OK(cudaMemcpy2DFromArray(back, WIDTH, array, 0, 0, WIDTH, HEIGHT, cudaMemcpyDeviceToHost));
    CHECK(memcmp(host, back, sizeof host) == 0);
    struct cudaMemcpy3DParms copy = {.srcArray = array,
                                     .dstPtr = {back, WIDTH, WIDTH, HEIGHT},
                                     .extent = {WIDTH, HEIGHT, 1},
                                     .kind = cudaMemcpyDeviceToHost};
    memset(back, 0, sizeof back);
    OK(cudaMemcpy3D(&copy));
    CHECK(memcmp(host, back, sizeof host) == 0);
    IS(cudaMemcpy2D(ptr, 1, host, WIDTH, WIDTH, HEIGHT, cudaMemcpyHostToDevice),
       cudaErrorInvalidPitchValue);
    OK(cudaFreeArray(array));
    OK(cudaFree(ptr));
    cudaGetLastError();
}

static void test_launch(void)
{
    dim3 one = {1, 1, 1}, bad = {2048, 1, 1};
    void *args[1] = {0};
    OK(launch(gemm, 16, 128, 0, 0));
    IS(cudaLaunchKernel((void *)gemm, one, bad, args, 0, 0), cudaErrorInvalidConfiguration);
    IS(cudaPeekAtLastError(), cudaErrorInvalidConfiguration);
    IS(cudaGetLastError(), cudaErrorInvalidConfiguration);
    IS(cudaLaunchKernel((void *)test_memory, one, one, args, 0, 0), cudaErrorInvalidDeviceFunction);
    IS(launch(gemm, 1, 1, 0, (cudaStream_t)0x1234500), cudaErrorInvalidResourceHandle);
    struct cudaFuncAttributes attributes;
    OK(cudaFuncGetAttributes(&attributes, (void *)softmax));
    CHECK(attributes.maxThreadsPerBlock == 1024);
    int blocks = 0;
    OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, (void *)gemm, 256, 0));
    CHECK(blocks == 8);
    OK(cudaDeviceSynchronize());
    cudaGetLastError();
}

static void spin(void *data)
{
    struct timespec nap = {0, 20000000};
    nanosleep(&nap, NULL);
    __atomic_add_fetch((int *)data, 1, __ATOMIC_SEQ_CST);
}

static void test_streams(void)
{
    cudaStream_t a, b;
    cudaEvent_t start, end;
    float ms = -1;
    int ran = 0;
    OK(cudaStreamCreate(&a));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    OK(cudaEventCreate(&start));
    OK(cudaEventCreate(&end));
    OK(cudaEventRecord(start, a));
    for (int i = 0; i < 1000; i++)
        OK(launch(gemm, 1, 1, 0, a));
    OK(cudaEventRecord(end, a));
    IS(cudaStreamQuery(a), cudaErrorNotReady);
    IS(cudaEventQuery(end), cudaErrorNotReady);
    IS(cudaEventElapsedTime(&ms, start, end), cudaErrorNotReady);
    IS(cudaGetLastError(), cudaSuccess);
    OK(cudaStreamWaitEvent(b, end, 0));
    double before = now_ms();
    OK(cudaStreamSynchronize(b));
    OK(cudaEventQuery(end));
    OK(cudaEventElapsedTime(&ms, start, end));
    CHECK(ms >= 20.0f);
    CHECK(now_ms() - before < 1000);
    OK(cudaLaunchHostFunc(a, spin, &ran));
    IS(cudaStreamQuery(a), cudaErrorNotReady);
    OK(cudaStreamSynchronize(a));
    CHECK(ran == 1);
    OK(cudaEventDestroy(start));
    OK(cudaEventDestroy(end));
    OK(cudaStreamDestroy(a));
    IS(cudaStreamSynchronize(a), cudaErrorInvalidResourceHandle);
    OK(cudaStreamDestroy(b));
    cudaGetLastError();
}

static void copy_late(void *data)
{
    struct timespec nap = {0, 5000000};
    nanosleep(&nap, NULL);
    *(int *)data = 42;
}

/* A copy behind a host function sees what that wrote. */
static void test_order(void)
{
    cudaStream_t stream;
    int *host, *device, back = 0;
    OK(cudaStreamCreate(&stream));
    OK(cudaMallocHost((void **)&host, sizeof *host));
    OK(cudaMallocAsync((void **)&device, sizeof *device, stream));
    *host = 1;
    OK(cudaLaunchHostFunc(stream, copy_late, host));
    OK(cudaMemcpyAsync(device, host, sizeof *host, cudaMemcpyHostToDevice, stream));
    OK(cudaMemcpyAsync(&back, device, sizeof back, cudaMemcpyDeviceToHost, stream));
    OK(cudaFreeAsync(device, stream));
    OK(cudaStreamSynchronize(stream));
    CHECK(back == 42);
    OK(cudaFreeHost(host));
    OK(cudaStreamDestroy(stream));
}

static void test_graph(void)
{
    cudaStream_t a, b;
    cudaEvent_t fork_event, join_event;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    enum cudaStreamCaptureStatus status;
    int *device, back = 0;
    size_t count = 0;
    void *ptr = NULL;
    OK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
    OK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    OK(cudaEventCreateWithFlags(&fork_event, cudaEventDisableTiming));
    OK(cudaEventCreateWithFlags(&join_event, cudaEventDisableTiming));
    OK(cudaMalloc((void **)&device, sizeof *device));
    OK(cudaMemset(device, 0, sizeof *device));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeThreadLocal));
    OK(cudaStreamIsCapturing(a, &status));
    CHECK(status == cudaStreamCaptureStatusActive);
    OK(launch(gemm, 4, 32, 0, a));
    OK(cudaEventRecord(fork_event, a));
    OK(cudaStreamWaitEvent(b, fork_event, 0));
    OK(launch(softmax, 4, 32, 0, b));
    OK(cudaMemsetAsync(device, 1, sizeof *device, b));
    OK(cudaEventRecord(join_event, b));
    OK(cudaStreamWaitEvent(a, join_event, 0));
    OK(cudaStreamEndCapture(a, &graph));
    OK(cudaGraphGetNodes(graph, NULL, &count));
    CHECK(count == 3);
    OK(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost));
    CHECK(back == 0);
    OK(cudaGraphInstantiate(&exec, graph, 0));
    OK(cudaGraphUpload(exec, a));
    OK(cudaGraphLaunch(exec, a));
    OK(cudaStreamSynchronize(a));
    OK(cudaMemcpy(&back, device, sizeof back, cudaMemcpyDeviceToHost));
    CHECK(back == 0x01010101);
    OK(cudaGraphExecDestroy(exec));
    IS(cudaGraphLaunch(exec, a), cudaErrorInvalidResourceHandle);
    OK(cudaGraphDestroy(graph));
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    IS(cudaMalloc(&ptr, 16), cudaErrorStreamCaptureUnsupported);
    IS(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
    CHECK(graph == NULL);
    OK(cudaStreamBeginCapture(a, cudaStreamCaptureModeRelaxed));
    IS(cudaStreamSynchronize(a), cudaErrorStreamCaptureUnsupported);
    IS(cudaStreamEndCapture(a, &graph), cudaErrorStreamCaptureInvalidated);
    OK(cudaFree(device));
    OK(cudaStreamDestroy(a));
    OK(cudaStreamDestroy(b));
    cudaGetLastError();
}

static void test_driver(void)
{
    CUmodule module;
    CUfunction function;
    CUlibrary library;
    CUkernel kernel;
    CUdeviceptr ptr = 0;
    CUcontext context;
    const char *name = NULL;
    void *pfn = NULL;
    CUdriverProcAddressQueryResult found;
    OK(cuCtxGetCurrent(&context));
    CHECK(context != NULL);
    IS(cuModuleLoadData(&module, ""), CUDA_ERROR_INVALID_IMAGE);
    OK(cuModuleLoadData(&module, "image"));
    OK(cuModuleGetFunction(&function, module, "saxpy"));
    IS(cuModuleGetFunction(&function, module, "missing_one"), CUDA_ERROR_NOT_FOUND);
    OK(cuFuncGetName(&name, function));
    CHECK(name && strcmp(name, "saxpy") == 0);
    OK(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    IS(cuLaunchKernel(function, 1, 1, 1, 2048, 1, 1, 0, NULL, NULL, NULL),
       CUDA_ERROR_INVALID_VALUE);
    OK(cuModuleUnload(module));
    IS(cuLaunchKernel(function, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuLibraryLoadData(&library, "image", NULL, NULL, 0, NULL, NULL, 0));
    OK(cuLibraryGetKernel(&kernel, library, "relu"));
    OK(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 64, 1, 1, 0, NULL, NULL, NULL));
    OK(cuLibraryUnload(library));
    OK(cuMemAlloc(&ptr, 64));
    OK(cuMemsetD32(ptr, 7, 16));
    OK(cuMemFree(ptr));
    OK(cuGetProcAddress("cuMemAlloc", &pfn, 13000, 0, &found));
    CHECK(pfn == (void *)cuMemAlloc_v2 && found == CU_GET_PROC_ADDRESS_SUCCESS);
    OK(cuGetProcAddress("cuMemAlloc", &pfn, 1000, 0, &found));
    CHECK(!pfn && found == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    OK(cuGetProcAddress("cuNoSuch", &pfn, 13000, 0, &found));
    CHECK(!pfn && found == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    void *legacy = NULL, *per_thread = NULL;
    OK(cuGetProcAddress("cuLaunchKernel", &legacy, 13000, 0, &found));
    OK(cuGetProcAddress("cuLaunchKernel", &per_thread, 13000, 2, &found));
    CHECK(legacy && per_thread && legacy != per_thread);
}

static void *thread_main(void *unused)
{
    (void)unused;
    cudaStream_t stream;
    OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int i = 0; i < 2000; i++)
        OK(launch(gemm, 1, 32, 0, stream));
    OK(launch(softmax, 1, 32, 0, cudaStreamPerThread));
    OK(cudaStreamSynchronize(stream));
    OK(cudaStreamDestroy(stream));
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
}

static void test_fork(void)
{
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        void *ptr;
        _exit(cudaMalloc(&ptr, 16) == cudaErrorInitializationError ? 0 : 1);
    }
    int status = -1;
    waitpid(pid, &status, 0);
    CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void test_reset(void)
{
    void *ptr = NULL;
    OK(cudaMalloc(&ptr, 64));
    OK(cudaDeviceReset());
    OK(cudaMalloc(&ptr, 64));
    OK(launch(gemm, 1, 1, 0, 0));
    OK(cudaDeviceSynchronize());
    OK(cudaFree(ptr));
}

/* Kernels long enough that nothing is over before it is asked about. */
static void slow_down(char **argv)
{
    if (!getenv("SIMCUDA_KERNEL_NS")) {
        setenv("SIMCUDA_KERNEL_NS", "200000", 1);
        execv("/proc/self/exe", argv);
    }
}

int main(int argc, char **argv)
{
    (void)argc;
    slow_down(argv);
    test_device();
    test_memory();
    test_shapes();
    test_launch();
    test_streams();
    test_order();
    test_graph();
    test_driver();
    test_threads();
    test_fork();
    test_reset();
    if (failure_count)
        printf("%d checks failed\n", failure_count);
    return failure_count != 0;
}
