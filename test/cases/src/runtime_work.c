/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the runtime API, for comparing what gpuprof saw with what the simulated CUDA did.
 *   runtime_work basic|variants|graph|fail|fork|threads COUNT CALLS|launches COUNT CALLS ...
 * Built as an executable, as a plugin (-DPLUGIN: run() is exported and there is no main), with
 * per-thread default streams, and with every function from dlsym (-DVIA_DLSYM=\"libcudart.so.12\"),
 * which with -DVIA_HELPER another object calls.
 * It prints each result, so that its output with and without gpuprof can be compared.
 */
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define KERNEL_COUNT 3
#define BATCH        3

#ifdef VIA_DLSYM
static void *runtime;
#ifdef VIA_HELPER
void *helper_find(void *library, const char *name); /* of stubs.c */
#else
#define helper_find dlsym
#endif

static void *look_up(const char *name)
{
    void *address = helper_find(runtime, name);
    if (!address) {
        fprintf(stderr, "%s: %s\n", name, dlerror());
        exit(9);
    }
    return address;
}
#define TEXT(name) #name
#define R(name)    ((__typeof__(&name))look_up(TEXT(name)))
#else
#define R(name) name
#endif

#define TRY(call)                                                                                  \
    do {                                                                                           \
        errno = 12345;                                                                             \
        int result_ = (int)(call);                                                                 \
        printf("%d errno %d  %s\n", result_, errno, #call);                                        \
    } while (0)

static char image[] = "not really a kernel";
static struct {
    int magic, version;
    const void *data;
    void *name;
} wrapper = {0x466243b1, 1, image, NULL};

/* What the program calls a kernel; nobody runs them. */
static char stubs[KERNEL_COUNT];
static char names[KERNEL_COUNT][64] = {"_Z6simplePfi", "_Z4tileILi16EEvPKfPf", "plain_c_kernel"};
static void **module;

static void register_kernels(void)
{
    module = R(__cudaRegisterFatBinary)(&wrapper);
    for (int i = 0; i < KERNEL_COUNT; i++)
        R(__cudaRegisterFunction)(module, &stubs[i], names[i], names[i], -1, 0, 0, 0, 0, 0);
    R(__cudaRegisterFatBinaryEnd)(module);
}

static void launches(cudaStream_t stream, unsigned seed)
{
    int argument = 1;
    void *arguments[] = {&argument};
    for (unsigned i = 0; i < 6; i++) {
        dim3 grid = {1 + i + seed, 2 + i, 3 + i}, block = {32 + i, 2, 1 + i};
        TRY(R(cudaLaunchKernel)(&stubs[i % KERNEL_COUNT], grid, block, arguments, 16 * i, stream));
    }
#if SIM_CUDART_MAJOR == 13 /* as nvcc 13 compiles <<<>>> */
    cudaKernel_t kernel = NULL;
    dim3 grid = {70000, 7, 3}, block = {64, 1, 1};
    TRY(R(__cudaGetKernel)(&kernel, &stubs[1]));
    TRY(R(__cudaLaunchKernel)(kernel, grid, block, arguments, 128, stream));
#endif
    cudaLaunchConfig_t config = {.gridDim = {5, 6, 7}, .blockDim = {8, 4, 2}};
    config.dynamicSmemBytes = 48;
    config.stream = stream;
    TRY(R(cudaLaunchKernelExC)(&config, &stubs[2], arguments));
}

static void copies(cudaStream_t stream)
{
    char *device = NULL, *other = NULL, *pinned = NULL, *managed = NULL, host[4096];
    memset(host, 7, sizeof host);
    TRY(R(cudaMalloc)((void **)&device, 65536));
    TRY(R(cudaMalloc)((void **)&other, 12345));
    TRY(R(cudaMallocHost)((void **)&pinned, 8192));
    TRY(R(cudaMallocManaged)((void **)&managed, 1 << 20, cudaMemAttachGlobal));
    TRY(R(cudaMemset)(device, 3, 65536));
    TRY(R(cudaMemsetAsync)(other, 5, 777, stream));
    TRY(R(cudaMemcpy)(device, host, sizeof host, cudaMemcpyHostToDevice));
    TRY(R(cudaMemcpy)(host, device, 100, cudaMemcpyDeviceToHost));
    TRY(R(cudaMemcpy)(other, device, 1000, cudaMemcpyDeviceToDevice));
    TRY(R(cudaMemcpyAsync)(device, pinned, 8192, cudaMemcpyHostToDevice, stream));
    TRY(R(cudaMemcpyAsync)(pinned, device, 4321, cudaMemcpyDeviceToHost, stream));
    TRY(R(cudaMemcpyAsync)(pinned, device, 55, cudaMemcpyDefault, stream));
    TRY(R(cudaMemcpy2D)(device, 256, host, 64, 60, 10, cudaMemcpyHostToDevice));
    TRY(R(cudaMemcpy2DAsync)(device, 256, pinned, 64, 30, 20, cudaMemcpyHostToDevice, stream));
    TRY(R(cudaMemset2D)(device, 512, 1, 100, 8));
    TRY(R(cudaStreamSynchronize)(stream));
    TRY(R(cudaDeviceSynchronize)());
    TRY(R(cudaFree)(other));
    TRY(R(cudaFree)(device));
    TRY(R(cudaFree)(managed));
    TRY(R(cudaFreeHost)(pinned));
}

static void *address(uint64_t value)
{
    return (void *)(uintptr_t)value;
}

/* One name, another list of arguments in 12 and 13: each must arrive whole at its own library. */
static void variants(cudaStream_t stream)
{
    char *device = NULL, *managed = NULL, host[BATCH][256];
    void *dsts[BATCH];
    const void *srcs[BATCH];
    size_t sizes[BATCH] = {100, 50, 25}, first = 0, fail = 99;
    struct cudaMemcpyAttributes attributes;
    memset(&attributes, 0, sizeof attributes);
    memset(host, 1, sizeof host);
    *(int *)(void *)&attributes = 1; /* cudaMemcpySrcAccessOrderStream */
    TRY(R(cudaMalloc)((void **)&device, 4096));
    TRY(R(cudaMallocManaged)((void **)&managed, 8192, cudaMemAttachGlobal));
    for (int i = 0; i < BATCH; i++) {
        dsts[i] = device + 512 * i;
        srcs[i] = host[i];
    }
    (void)fail;
#if SIM_CUDART_MAJOR == 12
    TRY(R(cudaMemcpyBatchAsync)(dsts, (void **)srcs, sizes, BATCH, &attributes, &first, 1, &fail,
                                stream));
    TRY(R(cudaMemPrefetchAsync)(managed, 8192, 1, stream));
    TRY(R(cudaMemAdvise)(managed, 4096, cudaMemAdviseSetReadMostly, 1));
#else
    struct cudaMemLocation location = {cudaMemLocationTypeDevice, 1};
    TRY(R(cudaMemcpyBatchAsync)(dsts, srcs, sizes, BATCH, &attributes, &first, 1, stream));
    TRY(R(cudaMemPrefetchAsync)(managed, 8192, location, 0, stream));
    TRY(R(cudaMemAdvise)(managed, 4096, cudaMemAdviseSetReadMostly, location));
#endif
    TRY(R(cudaStreamSynchronize)(stream));
    TRY(R(cudaFree)(managed));
    TRY(R(cudaFree)(device));
}

static void events(cudaStream_t stream, cudaStream_t other)
{
    cudaEvent_t begin = NULL, end = NULL;
    float ms;
    TRY(R(cudaEventCreate)(&begin));
    TRY(R(cudaEventCreateWithFlags)(&end, cudaEventDisableTiming & 0));
    TRY(R(cudaEventRecord)(begin, stream));
    launches(stream, 10);
    TRY(R(cudaEventRecord)(end, stream));
    TRY(R(cudaStreamWaitEvent)(other, end, 0));
    TRY(R(cudaEventSynchronize)(end));
    R(cudaStreamQuery)(stream);
    R(cudaEventQuery)(begin);
    TRY(R(cudaEventElapsedTime)(&ms, begin, end));
    TRY(R(cudaEventDestroy)(begin));
    TRY(R(cudaEventDestroy)(end));
}

static void pools(cudaStream_t stream)
{
    void *memory = NULL;
    TRY(R(cudaMallocAsync)(&memory, 30000, stream));
    TRY(R(cudaMemsetAsync)(memory, 0, 30000, stream));
    TRY(R(cudaFreeAsync)(memory, stream));
    TRY(R(cudaStreamSynchronize)(stream));
}

static void run_basic(void)
{
    cudaStream_t stream = NULL, other = NULL;
    TRY(R(cudaSetDevice)(0));
    TRY(R(cudaStreamCreate)(&stream));
    TRY(R(cudaStreamCreateWithFlags)(&other, cudaStreamNonBlocking));
    launches(0, 0);
    launches(stream, 3);
    launches(cudaStreamPerThread, 4);
    launches(cudaStreamLegacy, 5);
    copies(stream);
    copies(0);
    variants(stream);
    events(stream, other);
    pools(stream);
    TRY(R(cudaStreamDestroy)(stream));
    TRY(R(cudaStreamDestroy)(other));
    TRY(R(cudaDeviceSynchronize)());
}

/* Fork and join over a second stream; what is outside of the capture must not be marked. */
static void run_graph(void)
{
    cudaStream_t stream = NULL, second = NULL, outside = NULL;
    cudaEvent_t forked = NULL, joined = NULL;
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    char *device = NULL, *pinned = NULL;
    TRY(R(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking));
    TRY(R(cudaStreamCreateWithFlags)(&second, cudaStreamNonBlocking));
    TRY(R(cudaStreamCreateWithFlags)(&outside, cudaStreamNonBlocking));
    TRY(R(cudaEventCreate)(&forked));
    TRY(R(cudaEventCreate)(&joined));
    TRY(R(cudaMalloc)((void **)&device, 4096));
    TRY(R(cudaMallocHost)((void **)&pinned, 4096));
    launches(stream, 1);
    for (int round = 0; round < 2; round++) {
        TRY(R(cudaStreamBeginCapture)(stream, cudaStreamCaptureModeRelaxed));
        launches(stream, 2);
        TRY(R(cudaMemcpyAsync)(device, pinned, 1024, cudaMemcpyHostToDevice, stream));
        TRY(R(cudaEventRecord)(forked, stream));
        TRY(R(cudaStreamWaitEvent)(second, forked, 0));
        launches(second, 3);
        launches(outside, 4);
        TRY(R(cudaMemsetAsync)(device, 0, 512, second));
        TRY(R(cudaEventRecord)(joined, second));
        TRY(R(cudaStreamWaitEvent)(stream, joined, 0));
        TRY(R(cudaMemcpyAsync)(pinned, device, 2048, cudaMemcpyDeviceToHost, stream));
        TRY(R(cudaStreamEndCapture)(stream, &graph));
        launches(second, 5);
        TRY(R(cudaGraphInstantiate)(&exec, graph, 0));
        TRY(R(cudaGraphUpload)(exec, stream));
        for (int i = 0; i < 3; i++)
            TRY(R(cudaGraphLaunch)(exec, i ? stream : outside));
        TRY(R(cudaStreamSynchronize)(stream));
        TRY(R(cudaGraphExecDestroy)(exec));
        TRY(R(cudaGraphDestroy)(graph));
        launches(stream, 6);
    }
    TRY(R(cudaStreamSynchronize)(outside));
    TRY(R(cudaEventRecord)(forked, outside)); /* carries no capture any more */
    TRY(R(cudaStreamWaitEvent)(second, forked, 0));
    launches(second, 7);
    TRY(R(cudaDeviceSynchronize)());
    TRY(R(cudaFree)(device));
    TRY(R(cudaFreeHost)(pinned));
}

/* Streams go in the middle of a capture, and others come with their handles. */
static void run_gone(void)
{
    cudaStream_t stream = NULL, again = NULL, second = NULL;
    cudaEvent_t forked = NULL;
    for (int way = 0; way < 2; way++) {
        TRY(R(cudaStreamCreate)(&stream));
        TRY(R(cudaStreamBeginCapture)(stream, cudaStreamCaptureModeRelaxed));
        launches(stream, 1);
        if (way == 0)
            TRY(R(cudaStreamDestroy)(stream));
        else
            TRY(R(cudaDeviceReset)());
        TRY(R(cudaStreamCreate)(&again));
        if (again != stream)
            printf("another handle\n");
        launches(again, 2);
        TRY(R(cudaStreamSynchronize)(again));
        TRY(R(cudaStreamDestroy)(again));
    }
    TRY(R(cudaStreamCreate)(&stream));
    TRY(R(cudaStreamCreate)(&second));
    TRY(R(cudaEventCreate)(&forked));
    TRY(R(cudaStreamBeginCapture)(stream, cudaStreamCaptureModeRelaxed));
    TRY(R(cudaEventRecord)(forked, stream));
    TRY(R(cudaStreamWaitEvent)(second, forked, 0));
    launches(second, 3);
    TRY(R(cudaStreamDestroy)(second)); /* one that the capture only came to */
    TRY(R(cudaStreamCreate)(&again));
    if (again != second)
        printf("another handle\n");
    launches(again, 4);
    launches(stream, 5);
    TRY(R(cudaStreamDestroy)(stream));
    TRY(R(cudaStreamDestroy)(again));
    TRY(R(cudaDeviceSynchronize)());
}

static void run_fail(void)
{
    void *memory = NULL;
    char host[16];
    dim3 one = {1, 1, 1}, too_many = {2048, 1, 1};
    cudaStream_t bad = address(0xdeadbeef0);
    cudaEvent_t no_event = address(0xdeadbeef8);
    cudaGraph_t graph = NULL;
    TRY(R(cudaMalloc)(&memory, (size_t)1 << 50));
    TRY(R(cudaMalloc)(NULL, 4));
    TRY(R(cudaFree)(address(0x1234)));
    TRY(R(cudaLaunchKernel)(&stubs[0], one, too_many, NULL, 0, 0));
    TRY(R(cudaLaunchKernel)(host, one, one, NULL, 0, 0));
    TRY(R(cudaMemcpy)(host, NULL, 16, cudaMemcpyDeviceToHost));
    TRY(R(cudaMemcpyAsync)(host, host, 16, (enum cudaMemcpyKind)77, 0));
    TRY(R(cudaStreamSynchronize)(bad));
    TRY(R(cudaEventRecord)(no_event, 0));
    TRY(R(cudaStreamEndCapture)(0, &graph));
    TRY(R(cudaGraphLaunch)(NULL, 0));
    TRY(R(cudaMallocHost)(&memory, (size_t)1 << 60));
    TRY(R(cudaFreeHost)(address(0x77)));
    TRY(R(cudaGetLastError)());
    TRY(R(cudaFree)(NULL));
    TRY(R(cudaDeviceSynchronize)());
}

/* The child of a process that has used CUDA cannot use it; its calls are events all the same. */
static void run_fork(void)
{
    void *memory = NULL;
    int status = 0;
    TRY(R(cudaMalloc)(&memory, 1000));
    fflush(stdout);
    if (fork() == 0) {
        TRY(R(cudaMalloc)(&memory, 2000));
        TRY(R(cudaDeviceSynchronize)());
        exit(0);
    }
    wait(&status);
    printf("child %d\n", status);
    TRY(R(cudaFree)(memory));
}

static unsigned long call_count;

/* Quiet: output of threads would mix. */
static void *many(void *data)
{
    dim3 grid = {1, 1, 1}, block = {32, 1, 1};
    cudaStream_t stream;
    void *memory;
    grid.x += (unsigned)(uintptr_t)data;
    R(cudaStreamCreateWithFlags)(&stream, cudaStreamNonBlocking);
    __typeof__(&cudaLaunchKernel) launch = R(cudaLaunchKernel);
    for (unsigned long i = 0; i < call_count; i++) {
        block.x = 1 + i % 512;
        launch(&stubs[i % KERNEL_COUNT], grid, block, NULL, i % 4096, i & 1 ? stream : 0);
        if (i % 64 == 0) {
            R(cudaMalloc)(&memory, 1 + i);
            R(cudaMemcpyAsync)(memory, &i, 1 + i % 8, cudaMemcpyHostToDevice, stream);
            R(cudaStreamSynchronize)(stream);
            R(cudaFree)(memory);
        }
    }
    return NULL;
}

/* Nothing but launches, each exactly once, for counting. */
static void *only_launches(void *data)
{
    dim3 one = {1, 1, 1};
    __typeof__(&cudaLaunchKernel) launch = R(cudaLaunchKernel);
    for (unsigned long i = 0; i < call_count; i++)
        launch(&stubs[(uintptr_t)data % KERNEL_COUNT], one, one, NULL, 0, 0);
    return NULL;
}

static void run_threads(void *(*body)(void *), unsigned thread_count)
{
    pthread_t threads[64];
    for (unsigned i = 0; i < thread_count && i < 64; i++)
        pthread_create(&threads[i], NULL, body, (void *)(uintptr_t)i);
    for (unsigned i = 0; i < thread_count && i < 64; i++)
        pthread_join(threads[i], NULL);
    TRY(R(cudaDeviceSynchronize)());
}

int run(int argc, char **argv);
int run(int argc, char **argv)
{
#ifdef VIA_DLSYM
    runtime = dlopen(VIA_DLSYM, RTLD_NOW | RTLD_LOCAL);
    if (!runtime)
        return 8;
#endif
    register_kernels();
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "basic") == 0) {
            run_basic();
        } else if (strcmp(argv[i], "variants") == 0) {
            variants(0);
        } else if (strcmp(argv[i], "graph") == 0) {
            run_graph();
        } else if (strcmp(argv[i], "fail") == 0) {
            run_fail();
        } else if (strcmp(argv[i], "gone") == 0) {
            run_gone();
        } else if (strcmp(argv[i], "fork") == 0) {
            run_fork();
        } else if (i + 2 < argc &&
                   (strcmp(argv[i], "threads") == 0 || strcmp(argv[i], "launches") == 0)) {
            call_count = strtoul(argv[i + 2], NULL, 10);
            run_threads(argv[i][0] == 't' ? many : only_launches,
                        (unsigned)strtoul(argv[i + 1], NULL, 10));
            i += 2;
        } else {
            fprintf(stderr, "unknown: %s\n", argv[i]);
            return 7;
        }
    }
    R(__cudaUnregisterFatBinary)(module);
    return 3;
}

#ifndef PLUGIN
int main(int argc, char **argv)
{
    return run(argc, argv);
}
#endif
