/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A driver that stands in for the real one (libcuda.so.1) and has a few functions of an older day.
 * Its cuGetProcAddress looks for the newest form of a name by dlsym, in the library that cuInit
 * lies in, as dladdr() says: who is preloaded and defines cuInit is taken for it. -DIN_ALL: in all
 * libraries. -DBY_TABLE: it has a table of its functions' addresses, and a weak one of another.
 *
 * -DASKS: the program that asks it and prints what it gets; it, too, looks where cuInit lies.
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <cuda.h>

#define EXPORT __attribute__((visibility("default")))

#ifndef ASKS
#undef cuCtxSynchronize_v2
#pragma weak cuCtxSynchronize_v2
extern CUresult cuCtxSynchronize_v2(CUcontext context);

EXPORT CUresult cuInit(unsigned flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuDriverGetVersion(int *version)
{
    *version = 11040;
    return CUDA_SUCCESS;
}

EXPORT CUresult cuCtxSynchronize(void)
{
    return CUDA_SUCCESS;
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes)
{
    *memory = 4096 + bytes;
    return CUDA_SUCCESS;
}

static void *look(const char *name)
{
#ifdef BY_TABLE
    static const struct {
        const char *name;
        void *address;
    } table[] = {{"cuInit", (void *)cuInit},
                 {"cuCtxSynchronize_v2", (void *)cuCtxSynchronize_v2},
                 {"cuCtxSynchronize", (void *)cuCtxSynchronize},
                 {"cuDriverGetVersion", (void *)cuDriverGetVersion},
                 {"cuMemAlloc_v2", (void *)cuMemAlloc_v2}};
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (strcmp(table[i].name, name) == 0 && table[i].address)
            return table[i].address;
    return NULL;
#elif defined(IN_ALL)
    return dlsym(RTLD_DEFAULT, name);
#else
    Dl_info info;
    void *itself = dladdr((void *)cuInit, &info) ? dlopen(info.dli_fname, RTLD_LAZY) : NULL;
    return itself ? dlsym(itself, name) : NULL;
#endif
}

#undef cuGetProcAddress
EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
    char newest[100];
    (void)version;
    (void)flags;
    snprintf(newest, sizeof newest, "%s_v2", symbol);
    *pfn = look(newest);
    if (!*pfn)
        *pfn = look(symbol);
    return *pfn ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version, cuuint64_t flags,
                                    CUdriverProcAddressQueryResult *status)
{
    bool found = cuGetProcAddress(symbol, pfn, version, flags) == CUDA_SUCCESS;
    if (status)
        *status = found ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return CUDA_SUCCESS;
}

#else

typedef CUresult (*any_fn)(CUdeviceptr *, size_t);

static void call(const char *what, const char *name, any_fn function)
{
    CUdeviceptr memory = 0;
    bool alloc = strncmp(name, "cuMemAlloc", 10) == 0;
    bool calls = alloc || strncmp(name, "cuCtxSynchronize", 16) == 0;
    printf("%s %s: %s", what, name, function ? "found" : "nothing");
    if (function && calls)
        printf(", %d, %llu", (int)function(alloc ? &memory : NULL, 64), (unsigned long long)memory);
    puts("");
}

int main(void)
{
    static const char *const names[] = {"cuInit",       "cuCtxSynchronize",   "cuMemAlloc",
                                        "cuMemcpyHtoD", "cuDriverGetVersion", "cuNoSuch"};
    static const char *const forms[] = {"", "_v2"};
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
    __typeof__(&cuGetProcAddress_v2) get = (__typeof__(get))dlsym(driver, "cuGetProcAddress_v2");
    __typeof__(CUresult(*)(const char *, void **, int, cuuint64_t)) old =
        (__typeof__(old))dlsym(driver, "cuGetProcAddress");
    if (!get || !old)
        return 1;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        CUdriverProcAddressQueryResult status = 7;
        void *function = NULL;
        printf("%d, ", (int)get(names[i], &function, 13000, 0, &status));
        printf("status %d, ", (int)status);
        call("asked for", names[i], (any_fn)function);
        printf("%d, ", (int)old(names[i], &function, 13000, 0));
        call("asked for", names[i], (any_fn)function);
    }
    /* What the driver does, the program may do: look where it finds the driver's functions. */
    Dl_info info;
    void *found = dlsym(driver, "cuInit");
    void *there = found && dladdr(found, &info) ? dlopen(info.dli_fname, RTLD_LAZY) : NULL;
    for (unsigned i = 0; there && i < 2 * sizeof names / sizeof names[0]; i++) {
        char name[100];
        snprintf(name, sizeof name, "%s%s", names[i / 2], forms[i % 2]);
        dlerror();
        call("looked for", name, (any_fn)dlsym(there, name));
        printf("%s\n", dlerror() ? "an error" : "no error");
    }
    return 3;
}
#endif
