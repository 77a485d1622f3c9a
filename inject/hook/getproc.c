/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/getproc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/objects.h"
#include "cuda/cuda_abi.h"
#include "hook/hook_real.h"
#include "hook/resolve.h"
#include "store/meta.h"

#define ADDRESS_SLOTS   4096 /* power of two */
#define PROC_PER_THREAD 2u   /* CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM */

/* A search ends at an empty slot, so there must be one. */
_Static_assert(HOOK_SLOT_COUNT * 2 < ADDRESS_SLOTS, "the table stays sparse");

/* The library of cuGetProcAddress and of the functions that it returns. */
#define ASKED ((unsigned)HOOK_DOMAIN_cuGetProcAddress)

/*
 * The driver's functions by address: the reliable way to distinguish the two forms of
 * cuCtxSynchronize. One of the first threads that ask builds the table; meanwhile the others do
 * without it.
 */
static _Atomic(const struct hook *) by_address[ADDRESS_SLOTS];
static uintptr_t addresses[ADDRESS_SLOTS];
static _Atomic uint32_t made;
static _Atomic uint32_t version_asked; /* the largest version asked for so far, by any caller */

static unsigned getproc_slot_of(uintptr_t address)
{
    return (unsigned)((address * 0x9E3779B97F4A7C15u) >> 52);
}

static int getproc_visit_driver(const struct object *o, void *data)
{
    (void)data;
    if (!object_is(o, api_libraries[ASKED].soname))
        return 0;
    for (uint32_t i = 0; i < hook_count; i++) {
        if (hooks[i].domain != ASKED)
            continue;
        uintptr_t address = (uintptr_t)object_symbol(o, hooks[i].symbol);
        unsigned slot = getproc_slot_of(address);
        while (address && addresses[slot] && addresses[slot] != address)
            slot = (slot + 1) & (ADDRESS_SLOTS - 1);
        if (!address || addresses[slot])
            continue; /* one function with two names: the first row's wrapper serves both */
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
        /* One thread builds the table; meanwhile others search by name. */
        if (!atomic_compare_exchange_strong(&making, &none, 1))
            return NULL;
        if (objects_each(getproc_visit_driver, NULL))
            atomic_store_explicit(&made, 1, memory_order_release); /* stays set */
        else
            atomic_store(&making, 0);
    }
    for (unsigned slot = getproc_slot_of(address); addresses[slot];
         slot = (slot + 1) & (ADDRESS_SLOTS - 1))
        if (addresses[slot] == address)
            return atomic_load(&by_address[slot]);
    return NULL;
}

/* Returns the newest row of that name not newer than `version`, in the per-thread form if
 * requested. With a caller, only a row with a definition after ours. */
static const struct hook *find_by_name(const char *name, int version, uint64_t flags,
                                       uintptr_t caller)
{
    const struct hook *best = NULL;
    bool per_thread = flags & PROC_PER_THREAD;
    for (uint32_t i = 0; i < hook_count; i++) {
        const struct hook *h = &hooks[i];
        if (!h->proc_name || strcmp(h->proc_name, name) != 0 || h->proc_version > (uint32_t)version)
            continue;
        bool is_per_thread = h->proc_flags & PROC_PER_THREAD;
        if ((is_per_thread && !per_thread) || (caller && !resolve_definition(h->symbol, caller)))
            continue;
        bool best_per_thread = best && best->proc_flags & PROC_PER_THREAD;
        if (!best || is_per_thread > best_per_thread ||
            (is_per_thread == best_per_thread && h->proc_version > best->proc_version))
            best = h;
    }
    return best;
}

void *getproc_substitute(void *real, const char *name, int version, uint64_t flags,
                         uintptr_t caller)
{
    if (!real || !name || version < 0)
        return real;
    uint32_t seen = atomic_load(&version_asked);
    if ((uint32_t)version > seen)
        atomic_store(&version_asked, (uint32_t)version);
    const struct hook *hook = hook_of_wrapper(real);
    if (hook) {
        /* The caller is a stub, or a driver that looked for its own functions and found ours. */
        if (!resolve_definition(hook->symbol, caller))
            hook = find_by_name(name, version, flags, caller);
        return hook ? hook->wrapper : NULL;
    }
    hook = find_by_address((uintptr_t)real);
    if (!hook)
        hook = find_by_name(name, version, flags, 0);
    return hook && resolve_asked(hook, caller, real) ? hook->wrapper : real;
}

void getproc_report(struct thread *writer)
{
    static uint64_t reported_epoch; /* the writer's: the recording of the last report */
    char text[16];
    uint32_t asked = atomic_load(&version_asked);
    if (asked && reported_epoch != writer->epoch) {
        snprintf(text, sizeof text, "%u", asked);
        meta_append_text(writer, "cuda_asked", text);
    }
    reported_epoch = writer->epoch;
}

#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    __typeof__(&cuGetProcAddress) real = HOOK_REAL(cuGetProcAddress);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    CUresult result = real(symbol, pfn, cudaVersion, flags);
    if (result == CUDA_SUCCESS && pfn && *pfn) {
        *pfn = getproc_substitute(*pfn, symbol, cudaVersion, flags,
                                  (uintptr_t)__builtin_return_address(0));
        if (!*pfn)
            return CUDA_ERROR_NOT_FOUND;
    }
    return result;
}

EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion,
                                    cuuint64_t flags, CUdriverProcAddressQueryResult *symbolStatus)
{
    __typeof__(&cuGetProcAddress_v2) real = HOOK_REAL(cuGetProcAddress_v2);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    CUresult result = real(symbol, pfn, cudaVersion, flags, symbolStatus);
    if (result == CUDA_SUCCESS && pfn && *pfn) {
        *pfn = getproc_substitute(*pfn, symbol, cudaVersion, flags,
                                  (uintptr_t)__builtin_return_address(0));
        if (!*pfn && symbolStatus)
            *symbolStatus = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    }
    return result;
}
