/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which real function stands behind a hook. For the driver there is one per process; a runtime
 * function depends on the caller, because several libcudart may be loaded at once (one per Python
 * extension): a binding ties a caller's address range to its real function.
 */
#ifndef GPUPROF_INJECT_RESOLVE_H
#define GPUPROF_INJECT_RESOLVE_H

#include <stdatomic.h>
#include <stdint.h>

#include "hook_table.h"
#include "state.h"

struct binding {
    uintptr_t low;           /* callers in [low, low + bytes) */
    _Atomic uintptr_t bytes; /* 0: not valid yet, or no longer: an object was unloaded */
    void *real;
    uint32_t runtime_major; /* of the libcudart that `real` belongs to; 0 = driver or unknown */
    _Atomic(struct binding *) next;
};

/* Each slot's first, and nearly always only one: it is found without a load. */
extern HIDDEN struct binding bindings[HOOK_SLOT_COUNT];

/* NULL if nothing that is loaded defines the symbol. errno and dlerror() are kept. */
const struct binding *resolve_slow(unsigned slot, enum api_domain domain, const char *symbol,
                                   uintptr_t caller);

/* The binding of this caller's module, or NULL if none is known yet. */
static inline const struct binding *resolve_known(unsigned slot, uintptr_t caller)
{
    const struct binding *b = &bindings[slot];
    do {
        uintptr_t bytes = atomic_load_explicit(&b->bytes, memory_order_acquire); /* set last */
        if (likely(caller - b->low < bytes))
            return b;
        b = atomic_load_explicit(&b->next, memory_order_acquire);
    } while (b);
    return NULL;
}

static inline const struct binding *resolve(unsigned slot, enum api_domain domain,
                                            const char *symbol, uintptr_t caller)
{
    const struct binding *b = resolve_known(slot, caller);
    return likely(b) ? b : resolve_slow(slot, domain, symbol, caller);
}

/* Is the code at `caller` CUDA's own, or another object's that hooked calls go to? */
bool resolve_is_cuda(uintptr_t caller);

/* The driver's real function came to light (dlsym, cuGetProcAddress): used unless one is known. */
void resolve_driver(unsigned slot, void *real);

/* The module around `caller` got `real`, a libcudart's, from dlsym: its calls go there. */
void resolve_runtime(unsigned slot, uintptr_t caller, void *real);

/*
 * Drops bindings of and into objects that were unloaded. After each dlclose, and now and then from
 * the writer thread: a dlclose that was called past our hook. errno and dlerror() are kept.
 */
void resolve_refresh(void);

#endif
