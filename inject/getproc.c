/* SPDX-License-Identifier: Apache-2.0 */
#include "getproc.h"

#include <errno.h>
#include <string.h>

#include "cuda_abi.h"
#include "hook_real.h"
#include "objects.h"
#include "resolve.h"

#define ADDRESS_SLOTS   1024 /* power of two, over twice the driver rows */
#define PROC_PER_THREAD 2u   /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

/* The driver's functions by address: how one tells cuCtxSynchronize's two forms apart for sure. */
static _Atomic(const struct hook *) by_address[ADDRESS_SLOTS];
static uintptr_t addresses[ADDRESS_SLOTS];
static _Atomic uint32_t made;
static _Atomic uint32_t version_asked;

static unsigned slot_of(uintptr_t address)
{
    return (unsigned)((address * 0x9E3779B97F4A7C15u) >> 54);
}

static int visit_driver(const struct object *o, void *data)
{
    (void)data;
    if (!object_is(o, "libcuda.so"))
        return 0;
    for (uint32_t i = 0; i < hook_count; i++) {
        if (hooks[i].domain != API_DRIVER)
            continue;
        uintptr_t address = (uintptr_t)object_symbol(o, hooks[i].symbol);
        unsigned slot = slot_of(address);
        while (address && addresses[slot] && addresses[slot] != address)
            slot = (slot + 1) & (ADDRESS_SLOTS - 1);
        if (!address || addresses[slot])
            continue; /* two names of one function: the first row's wrapper serves both */
        addresses[slot] = address;
        atomic_store(&by_address[slot], &hooks[i]);
    }
    return 1;
}

static const struct hook *find_by_address(uintptr_t address)
{
    static _Atomic uint32_t making;
    uint32_t none = 0;
    if (!atomic_load_explicit(&made, memory_order_acquire)) {
        /* One thread makes it; others meanwhile do with the names. */
        if (!atomic_compare_exchange_strong(&making, &none, 1))
            return NULL;
        if (objects_each(visit_driver, NULL))
            atomic_store_explicit(&made, 1, memory_order_release);
        atomic_store(&making, 0);
    }
    for (unsigned slot = slot_of(address); addresses[slot]; slot = (slot + 1) & (ADDRESS_SLOTS - 1))
        if (addresses[slot] == address)
            return atomic_load(&by_address[slot]);
    return NULL;
}

/* The newest row of that name which is not newer than `version`, per-thread form if asked for. */
static const struct hook *find_by_name(const char *name, int version, uint64_t flags)
{
    const struct hook *best = NULL;
    bool per_thread = flags & PROC_PER_THREAD;
    for (uint32_t i = 0; i < hook_count; i++) {
        const struct hook *h = &hooks[i];
        if (!h->proc_name || strcmp(h->proc_name, name) != 0 || h->proc_version > (uint32_t)version)
            continue;
        bool is_per_thread = h->proc_flags & PROC_PER_THREAD;
        if (is_per_thread && !per_thread)
            continue;
        bool best_per_thread = best && best->proc_flags & PROC_PER_THREAD;
        if (!best || is_per_thread > best_per_thread ||
            (is_per_thread == best_per_thread && h->proc_version > best->proc_version))
            best = h;
    }
    return best;
}

void *getproc_substitute(void *real, const char *name, int version, uint64_t flags)
{
    if (!real || !name || version < 0 || hook_is_wrapper(real))
        return real;
    uint32_t seen = atomic_load(&version_asked);
    if ((uint32_t)version > seen)
        atomic_store(&version_asked, (uint32_t)version);
    const struct hook *hook = find_by_address((uintptr_t)real);
    if (!hook)
        hook = find_by_name(name, version, flags);
    if (!hook)
        return real;
    resolve_driver(hook->slot, real);
    return hook->wrapper;
}

uint32_t getproc_version_asked(void)
{
    return atomic_load(&version_asked);
}

#define HOOK(id, symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api.def"

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    __typeof__(&cuGetProcAddress) real = HOOK_REAL(cuGetProcAddress, API_DRIVER);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    CUresult result = real(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = getproc_substitute(*pfn, symbol, cudaVersion, flags);
    return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    __typeof__(&cuGetProcAddress_v2) real = HOOK_REAL(cuGetProcAddress_v2, API_DRIVER);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    CUresult result = real(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS && pfn)
        *pfn = getproc_substitute(*pfn, symbol, cudaVersion, flags);
    return result;
}
