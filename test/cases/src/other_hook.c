/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Somebody else's preload, such as a memory limiter: hooks dlsym by way of dlvsym, counts
 * cudaMalloc and cuMemAlloc on their way, and hands out its own functions where a program asks
 * dlsym for them. What it calls itself it finds with RTLD_NEXT, or in the libcuda that it opens.
 * With -DPLAIN it hooks no dlsym, and asks the one that everybody sees.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef void *(*dlsym_fn)(void *, const char *);
typedef int (*malloc_fn)(void **, size_t);
typedef int (*alloc_fn)(unsigned long long *, size_t);

#ifdef __aarch64__
#define OLDEST_GLIBC "GLIBC_2.17"
#else
#define OLDEST_GLIBC "GLIBC_2.2.5"
#endif

static unsigned count;

EXPORT int cudaMalloc(void **memory, size_t bytes);
EXPORT int cuMemAlloc_v2(unsigned long long *memory, size_t bytes);

#ifdef PLAIN
#define next_dlsym dlsym
#else
EXPORT void *dlsym(void *handle, const char *name);
static void *next_dlsym(void *handle, const char *name)
{
    static dlsym_fn real;
    if (!real)
        real = (dlsym_fn)dlvsym(RTLD_NEXT, "dlsym", OLDEST_GLIBC);
    return real(handle, name);
}

EXPORT void *dlsym(void *handle, const char *name)
{
    if (handle != RTLD_NEXT && strcmp(name, "cuMemAlloc_v2") == 0 && next_dlsym(handle, name))
        return (void *)cuMemAlloc_v2;
    return next_dlsym(handle, name);
}
#endif

EXPORT int cudaMalloc(void **memory, size_t bytes)
{
    static malloc_fn real;
    if (!real)
        real = (malloc_fn)next_dlsym(RTLD_NEXT, "cudaMalloc");
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    return real ? real(memory, bytes) : 302;
}

EXPORT int cuMemAlloc_v2(unsigned long long *memory, size_t bytes)
{
    static alloc_fn real;
    if (!real)
        real = (alloc_fn)next_dlsym(dlopen("libcuda.so.1", RTLD_LAZY), "cuMemAlloc_v2");
    __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
    return real ? real(memory, bytes) : 302;
}

__attribute__((destructor)) static void report(void)
{
    printf("other hook: %u\n", count);
}
