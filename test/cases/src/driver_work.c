/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program of the driver API. How it comes by its functions is what matters:
 *   (nothing)      linked with -lcuda
 *   -DVIA_DLSYM    dlopen("libcuda.so.1", RTLD_LAZY) and dlsym, as cublasLt does it
 *   -DVIA_GETPROC  dlsym of cuGetProcAddress_v2, the pointer asked for itself, then everything else
 */
#include <cuda.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT2(name) #name
#define TEXT(name)  TEXT2(name)

#if defined(VIA_DLSYM) || defined(VIA_GETPROC)
static void *driver;
static void *need(const char *name, void *address)
{
    if (!address) {
        fprintf(stderr, "%s: not found\n", name);
        exit(9);
    }
    return address;
}
#endif

#if defined(VIA_DLSYM)
#define D(name) ((__typeof__(&name))need(TEXT(name), dlsym(driver, TEXT(name))))
#elif defined(VIA_GETPROC)
typedef CUresult (*get_fn)(const char *, void **, int, cuuint64_t,
                           CUdriverProcAddressQueryResult *);
static get_fn get;
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define FLAGS 2
#else
#define FLAGS 1
#endif
/* "cuMemAlloc" is asked for as "cuMemAlloc" of a version that has it. */
static void *ask(const char *symbol)
{
    char name[128];
    void *address = NULL;
    snprintf(name, sizeof name, "%s", symbol);
    for (int cut = 0; cut < 2; cut++) {
        char *at = strrchr(name, '_');
        if (at && (strcmp(at, "_ptsz") == 0 || strcmp(at, "_ptds") == 0 || at[1] == 'v'))
            *at = '\0';
    }
    if (get(name, &address, 12080, FLAGS, NULL) != CUDA_SUCCESS)
        address = NULL;
    return need(symbol, address);
}
#define D(name) ((__typeof__(&name))ask(TEXT(name)))
#else
#define D(name) name
#endif

#define TRY(call)                                                                                  \
    do {                                                                                           \
        errno = 12345;                                                                             \
        int result_ = (int)(call);                                                                 \
        printf("%d errno %d  %s\n", result_, errno, #call);                                        \
    } while (0)

static CUfunction kernels[2];

static void launches(CUstream stream)
{
    for (unsigned i = 0; i < 5; i++)
        TRY(D(cuLaunchKernel)(kernels[i & 1], 1 + i, 2 + i, 3 + i, 32 + i, 2, 1 + i, 64 * i, stream,
                              NULL, NULL));
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
    config.gridDimX = 80000, config.gridDimY = 5, config.gridDimZ = 6;
    config.blockDimX = 8, config.blockDimY = 4, config.blockDimZ = 2;
    config.sharedMemBytes = 96;
    config.hStream = stream;
    TRY(D(cuLaunchKernelEx)(&config, kernels[1], NULL, NULL));
}

static void copies(CUstream stream)
{
    CUdeviceptr device = 0, other = 0;
    void *pinned = NULL;
    char host[4096];
    memset(host, 7, sizeof host);
    TRY(D(cuMemAlloc)(&device, 65536));
    TRY(D(cuMemAlloc)(&other, 4096));
    TRY(D(cuMemAllocHost)(&pinned, 8192));
    TRY(D(cuMemsetD8)(device, 1, 333));
    TRY(D(cuMemsetD32Async)(device, 1, 111, stream));
    TRY(D(cuMemcpyHtoD)(device, host, 4000));
    TRY(D(cuMemcpyDtoH)(host, device, 3000));
    TRY(D(cuMemcpyDtoD)(other, device, 2000));
    TRY(D(cuMemcpyHtoDAsync)(device, pinned, 1000, stream));
    TRY(D(cuMemcpyDtoHAsync)(pinned, device, 500, stream));
    TRY(D(cuStreamSynchronize)(stream));
    TRY(D(cuMemFree)(device));
    TRY(D(cuMemFree)(other));
    TRY(D(cuMemFreeHost)(pinned));
}

static void events(CUstream stream)
{
    CUevent event = NULL;
    TRY(D(cuEventCreate)(&event, 0));
    TRY(D(cuEventRecord)(event, stream));
    TRY(D(cuStreamWaitEvent)(stream, event, 0));
    TRY(D(cuEventSynchronize)(event));
    TRY(D(cuEventDestroy)(event));
    TRY(D(cuCtxSynchronize)());
}

static void capture(CUstream stream)
{
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    TRY(D(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    launches(stream);
    TRY(D(cuStreamEndCapture)(stream, &graph));
    TRY(D(cuGraphInstantiateWithFlags)(&exec, graph, 0));
    TRY(D(cuGraphLaunch)(exec, stream));
    TRY(D(cuGraphLaunch)(exec, stream));
    TRY(D(cuStreamSynchronize)(stream));
    TRY(D(cuGraphExecDestroy)(exec));
    TRY(D(cuGraphDestroy)(graph));
    launches(stream);
}

static void failures(void)
{
    CUdeviceptr memory = 0;
    TRY(D(cuMemAlloc)(&memory, (size_t)1 << 50));
    TRY(D(cuMemFree)(0x1234));
    TRY(D(cuLaunchKernel)(kernels[0], 1, 1, 1, 4096, 1, 1, 0, NULL, NULL, NULL));
    TRY(D(cuStreamSynchronize)((CUstream)(uintptr_t)0xdeadbeef0));
}

/* Streams go in the middle of a capture, and others come with their handles. */
static void gone(CUdevice device)
{
    CUcontext context = NULL;
    CUstream stream = NULL, again = NULL;
    CUdeviceptr memory = 0;
    for (int way = 0; way < 3; way++) {
        if (way == 2)
            TRY(D(cuCtxCreate)(&context, NULL, 0, device));
        TRY(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
        TRY(D(cuMemAlloc)(&memory, 4096));
        TRY(D(cuStreamBeginCapture)(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        TRY(D(cuMemsetD8Async)(memory, 1, 100, stream));
        if (way == 0) {
            TRY(D(cuStreamDestroy)(stream));
        } else {
            if (way == 1)
                TRY(D(cuDevicePrimaryCtxReset)(device));
            else
                TRY(D(cuCtxDestroy)(context));
            TRY(D(cuDevicePrimaryCtxRetain)(&context, device));
            TRY(D(cuCtxSetCurrent)(context));
        }
        again = NULL;
        for (int i = 0; i < 64 && again != stream; i++)
            D(cuStreamCreate)(&again, CU_STREAM_NON_BLOCKING);
        if (again != stream)
            printf("another handle\n");
        TRY(D(cuMemAlloc)(&memory, 4096));
        TRY(D(cuMemsetD8Async)(memory, 1, 200, again));
        TRY(D(cuStreamSynchronize)(again));
        TRY(D(cuStreamDestroy)(again));
    }
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context = NULL;
    CUmodule module = NULL;
    CUstream stream = NULL;
#if defined(VIA_DLSYM) || defined(VIA_GETPROC)
    driver = dlopen("libcuda.so.1", RTLD_LAZY);
    if (!driver)
        return 8;
#endif
#ifdef VIA_GETPROC
    get = (get_fn)need("cuGetProcAddress_v2", dlsym(driver, "cuGetProcAddress_v2"));
    void *again = NULL;
    if (get("cuGetProcAddress", &again, 12000, 0, NULL) != CUDA_SUCCESS)
        return 7;
    get = (get_fn)need("cuGetProcAddress", again);
#endif
    TRY(D(cuInit)(0));
    TRY(D(cuDeviceGet)(&device, 0));
    TRY(D(cuDevicePrimaryCtxRetain)(&context, device));
    TRY(D(cuCtxSetCurrent)(context));
    TRY(D(cuModuleLoadData)(&module, "an image"));
    TRY(D(cuModuleGetFunction)(&kernels[0], module, "_Z5firstPf"));
    TRY(D(cuModuleGetFunction)(&kernels[1], module, "second"));
    TRY(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    launches(NULL);
    launches(stream);
    copies(NULL);
    copies(stream);
    events(stream);
    capture(stream);
    failures();
    TRY(D(cuModuleUnload)(module));
    if (argc > 1 && strcmp(argv[1], "gone") == 0)
        gone(device);
    return 3;
}
