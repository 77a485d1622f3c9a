/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what every kind of look-up finds, and what dlerror() says: lookups FOLDER. The folder has
 * librunpath.so (built from this file with -DLIBRARY), whose RUNPATH leads to libonly_there.so.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *where(void *address)
{
    Dl_info info;
    if (!address)
        return "nothing";
    if (!dladdr(address, &info))
        return "nobody";
    const char *name = strrchr(info.dli_fname, '/');
    return name ? name + 1 : info.dli_fname;
}

static void show(const char *what, void *found)
{
    const char *error = dlerror();
    char text[1000];
    snprintf(text, sizeof text, "%s", error ? error : "no error"); /* the next call frees it */
    const char *again = dlerror();
    /* A hook stands for what it hooks: only that something was found is of interest there. */
    int hooked = found && strncmp(where(found), "libgpuprof", 10) == 0;
    printf("%s: %s, %s%s\n", what, hooked ? "hooked" : where(found), text,
           again ? ", and still" : "");
}

#ifdef LIBRARY

void from_library(void);
void from_library(void)
{
    void *there = dlopen("libonly_there.so", RTLD_NOW);
    show("library: dlopen by RUNPATH", there ? dlsym(there, "only_there") : NULL);
    show("library: next malloc", dlsym(RTLD_NEXT, "malloc"));
    show("library: next from_library", dlsym(RTLD_NEXT, "from_library"));
    show("library: next dlsym", dlsym(RTLD_NEXT, "dlsym") ? (void *)stdout : NULL);
    show("library: default cudaMalloc", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    show("library: next cudaMalloc", dlsym(RTLD_NEXT, "cudaMalloc"));
}

#elif defined(ONLY_THERE)

int only_there;

#else

#ifdef WITH_CUDA
#include <cuda.h>
#include <cuda_runtime_api.h>
#endif

static void pending(void (*call)(void), const char *what)
{
    dlopen("libdoes_not_exist.so", RTLD_NOW);
    call();
    const char *error = dlerror();
    printf("%s: %s\n", what, error ? error : "no error");
}

#ifdef WITH_CUDA
static void *memory;
static void call_malloc(void)
{
    cudaMalloc(&memory, 64);
}
static void call_free(void)
{
    cudaFree(memory);
}
static void call_driver(void)
{
    cuCtxSynchronize();
}
#endif
static void call_nothing(void)
{
}

int main(int argc, char **argv)
{
    char path[4096];
    if (argc < 2)
        return 2;
    snprintf(path, sizeof path, "%s/librunpath.so", argv[1]);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *math = dlopen("libm.so.6", RTLD_NOW);
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    void *program = dlopen(NULL, RTLD_NOW);
    dlerror();
    pending(call_nothing, "pending");
    show("cos", dlsym(math, "cos"));
    show("cos, versioned", dlvsym(math, "cos", "GLIBC_2.2.5"));
    show("cos, no such version", dlvsym(math, "cos", "GLIBC_0.1"));
    show("no such name", dlsym(math, "no_such_name"));
    show("cudaMalloc of libm", dlsym(math, "cudaMalloc"));
    show("cuLaunchKernel of libm", dlsym(math, "cuLaunchKernel"));
    show("cuLaunchKernel of libm, versioned", dlvsym(math, "cuLaunchKernel", "V1"));
    show("cudaMalloc of librunpath", dlsym(library, "cudaMalloc"));
    show("default malloc", dlsym(RTLD_DEFAULT, "malloc"));
    show("default cudaMalloc", dlsym(RTLD_DEFAULT, "cudaMalloc"));
    show("default cuMemAlloc_v2", dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
    show("default cudaMallocManaged", dlsym(RTLD_DEFAULT, "cudaMallocManaged"));
    show("default cudaNoSuch", dlsym(RTLD_DEFAULT, "cudaNoSuch"));
    show("next malloc", dlsym(RTLD_NEXT, "malloc"));
    show("next cudaNoSuch", dlsym(RTLD_NEXT, "cudaNoSuch"));
    show("program's main", dlsym(program, "main"));
    show("program's cudaMalloc", dlsym(program, "cudaMalloc"));
    if (driver) {
        show("driver's cuNoSuch", dlsym(driver, "cuNoSuch"));
        show("driver's cuDeviceGet", dlsym(driver, "cuDeviceGet"));
        show("driver's cudaMalloc", dlsym(driver, "cudaMalloc"));
        show("driver's malloc", dlsym(driver, "malloc"));
        printf("driver's cuMemAlloc_v2: %s\n", dlsym(driver, "cuMemAlloc_v2") ? "found" : "lost");
    }
    void (*from_library)(void) = library ? (void (*)(void))dlsym(library, "from_library") : NULL;
    if (from_library)
        from_library();
#ifdef WITH_CUDA
    pending(call_malloc, "pending before the first call");
    pending(call_free, "pending before the second call");
    pending(call_driver, "pending before a driver call");
    for (int i = 0; i < 3; i++) {
        errno = 100 + i;
        int result = i ? (int)cudaFree(NULL) : (int)cudaDeviceSynchronize();
        printf("%d, errno %d\n", result, errno);
    }
#endif
    return 5;
}
#endif
