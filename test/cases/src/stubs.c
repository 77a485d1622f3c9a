/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A framework that carries stubs of CUDA's functions, which fill themselves at their first call:
 *   -DHELPER  a library whose function calls dlsym for who asks
 *   -DSTUBS   the library of the stubs, linked with it
 *   -DPLUGIN  what calls them (run), -DMAIN the program around that; each alone, or in one object
 * The variable STUBS_WAY says how a stub finds what it forwards to:
 *   open     (the default) dlsym in the library that it opens
 *   getproc  the driver's functions by cuGetProcAddress
 *   helper   the helper calls dlsym
 *   next     dlsym(RTLD_NEXT), and if there is none, the library
 *   all      dlsym(RTLD_DEFAULT), and if that is the stub itself, the library
 * STUBS_RUNTIME: the name of the runtime that it opens. With -O2 the stub's call is a jump: whom it
 * calls sees the stub's caller.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cuda.h>
#include <cuda_runtime_api.h>

#define EXPORT __attribute__((visibility("default")))

extern unsigned stub_calls;
void *helper_find(void *library, const char *name);
int run(int argc, char **argv);

#ifdef HELPER
EXPORT void *helper_find(void *library, const char *name)
{
    return dlsym(library, name);
}
#endif

#ifdef STUBS
EXPORT unsigned stub_calls;

static void *find(const char *soname, const char *name, void *self)
{
    const char *way = getenv("STUBS_WAY") ? getenv("STUBS_WAY") : "open";
    void *found = NULL;
    if (strcmp(way, "next") == 0)
        found = dlsym(RTLD_NEXT, name);
    if (strcmp(way, "all") == 0)
        found = dlsym(RTLD_DEFAULT, name);
    if (found && found != self)
        return found;
    void *library = dlopen(soname, RTLD_LAZY);
    if (!library)
        return NULL;
    if (strcmp(way, "helper") == 0)
        return helper_find(library, name);
    if (strcmp(way, "getproc") != 0 || strncmp(name, "cuda", 4) == 0)
        return dlsym(library, name);
    CUdriverProcAddressQueryResult status;
    char stem[64];
    __typeof__(&cuGetProcAddress_v2) get = (__typeof__(get))dlsym(library, "cuGetProcAddress_v2");
    snprintf(stem, sizeof stem, "%.*s", (int)strcspn(name, "_"), name);
    return get && get(stem, &found, 12000, 0, &status) == CUDA_SUCCESS ? found : NULL;
}

#define STUB(type, soname, name, params, names)                                                    \
    static type stub_##name params                                                                 \
    {                                                                                              \
        static type(*real) params;                                                                 \
        stub_calls++;                                                                              \
        if (!real)                                                                                 \
            real = (type(*) params)find(soname, #name, (void *)stub_##name);                       \
        return real ? real names : (type)303;                                                      \
    }                                                                                              \
    EXPORT type name params __attribute__((alias("stub_" #name)));
#define DRIVER_STUB(name, params, names) STUB(CUresult, "libcuda.so.1", name, params, names)
#define RUNTIME_STUB(name, params, names)                                                          \
    STUB(cudaError_t, getenv("STUBS_RUNTIME") ? getenv("STUBS_RUNTIME") : "libcudart.so.12", name, \
         params, names)

DRIVER_STUB(cuInit, (unsigned flags), (flags))
DRIVER_STUB(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device), (context, device))
DRIVER_STUB(cuCtxSetCurrent, (CUcontext context), (context))
DRIVER_STUB(cuMemAlloc_v2, (CUdeviceptr * memory, size_t bytes), (memory, bytes))
DRIVER_STUB(cuMemFree_v2, (CUdeviceptr memory), (memory))
RUNTIME_STUB(cudaMalloc, (void **memory, size_t bytes), (memory, bytes))
RUNTIME_STUB(cudaFree, (void *memory), (memory))
#endif

#ifdef PLUGIN
static int begin(void)
{
    CUcontext context = NULL;
    int result = (int)cuInit(0);
    result = result ? result : (int)cuDevicePrimaryCtxRetain(&context, 0);
    return result ? result : (int)cuCtxSetCurrent(context);
}

static int driver(void)
{
    int result = begin();
    for (int i = 0; i < 3 && !result; i++) {
        CUdeviceptr memory = 0;
        result = (int)cuMemAlloc(&memory, 64 + (size_t)i);
        result = result ? result : (int)cuMemFree(memory);
    }
    return result;
}

static int asked(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY);
    __typeof__(&cuMemAlloc_v2) allocate = (__typeof__(allocate))dlsym(library, "cuMemAlloc_v2");
    __typeof__(&cuMemFree_v2) release = (__typeof__(release))dlsym(library, "cuMemFree_v2");
    CUdeviceptr memory = 0;
    int result = begin();
    result = result ? result : (int)allocate(&memory, 64);
    return result ? result : (int)release(memory);
}

static int runtime(void)
{
    int result = 0;
    for (int i = 0; i < 3 && !result; i++) {
        void *memory = NULL;
        result = (int)cudaMalloc(&memory, 64 + (size_t)i);
        result = result ? result : (int)cudaFree(memory);
    }
    return result;
}

/*
 * Each word: driver, runtime, a library to open, or asked and one to ask for the driver's. In the
 * end, how often stubs were called since the word "count", if that is there.
 */
EXPORT int run(int argc, char **argv)
{
    const unsigned *counted = NULL;
    unsigned before = 0;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "driver") == 0) {
            printf("driver: %d\n", driver());
        } else if (strcmp(argv[i], "runtime") == 0) {
            printf("runtime: %d\n", runtime());
        } else if (strcmp(argv[i], "asked") == 0) {
            printf("asked: %d\n", asked(argv[++i]));
        } else if (strcmp(argv[i], "count") == 0) {
            counted = &stub_calls;
            before = stub_calls;
        } else if (!dlopen(argv[i], RTLD_NOW | RTLD_LOCAL)) {
            printf("%s\n", dlerror());
        }
    }
    if (counted)
        printf("stubs: %u\n", *counted - before);
    return 3;
}
#endif

#ifdef MAIN
int main(int argc, char **argv)
{
    return run(argc, argv);
}
#endif
