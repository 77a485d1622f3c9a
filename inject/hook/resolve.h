/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which real function stands behind a hook. In this order: what another preload between us and libc
 * defines, such as a quota's; what CUDA's own library defines; and while neither is there, what
 * anything else does, for that one call. The last are stubs that forward: once they have loaded
 * CUDA's library, a hook that went to them would be called by them.
 *
 * For the driver there is one real function per process, unless another preload hooks it, too. A
 * runtime function depends on the caller, because several libcudart may be loaded at once (one per
 * Python extension): a binding ties a caller's address range to its real function.
 */
#ifndef GPUPROF_INJECT_RESOLVE_H
#define GPUPROF_INJECT_RESOLVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "hook/hook_table.h"
#include "record/state.h"

struct object;

struct binding {
    uintptr_t low;           /* callers in [low, low + bytes) */
    _Atomic uintptr_t bytes; /* 0: not valid yet, or no longer: an object was unloaded */
    void *real;
    uint32_t major;        /* of the library that `real` belongs to; 0: unknown */
    bool is_owners;        /* that library's calls own what it calls of owners: API_OWNER */
    bool is_own;           /* the callers are such a library, one that it is within, or a stub */
    _Atomic bool is_asked; /* `real` was asked for by its handle */
    _Atomic(struct binding *) next;
};

/* Each slot's first, and nearly always only one: it is found without a load. */
extern HIDDEN struct binding bindings[HOOK_SLOT_COUNT];

/*
 * NULL if nothing that is loaded defines the symbol. What is good for one call only is put into
 * `unbound`, the caller's own; if it stands in for CUDA, this_thread.stand_in says so until the
 * caller puts back what was there. errno and dlerror() are kept.
 */
const struct binding *resolve_slow(unsigned slot, enum api_domain domain, const char *symbol,
                                   uintptr_t caller, struct binding *unbound);

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
                                            const char *symbol, uintptr_t caller,
                                            struct binding *unbound)
{
    const struct binding *b = resolve_known(slot, caller);
    return likely(b) ? b : resolve_slow(slot, domain, symbol, caller, unbound);
}

/* What a call of `symbol` by the code at `caller` would go to, hooked or not. NULL: nowhere. */
void *resolve_definition(const char *symbol, uintptr_t caller);

/* Is `address` inside the library that `symbol` belongs to? */
bool resolve_is_vendors(const char *symbol, uintptr_t address);

/* Neither that, nor another preload's between us and libc? */
bool resolve_is_stub(const char *symbol, uintptr_t address);

/* Does the object that the code at `caller` lies in define the symbol itself? */
bool resolve_defines(const char *symbol, uintptr_t caller);

/* Is the object that library, a part of it, or one whose calls may be within its own? */
bool resolve_is_part(const struct object *o, enum api_domain domain);

/* Is the code at `caller` CUDA's own, or another object's that hooked calls go to? */
bool resolve_is_cuda(uintptr_t caller);

/*
 * The code at `caller` asked for the hook's function (dlsym, cuGetProcAddress) and got `real`.
 * True: that is CUDA's, or another preload's, and the caller may have the hook instead: from there
 * its calls go to `real`, the driver's where they are known to go.
 */
bool resolve_asked(const struct hook *hook, uintptr_t caller, void *real);

/*
 * Drops bindings of and into objects that were unloaded. After each dlclose, and now and then from
 * the writer thread: a dlclose that was called past our hook. errno and dlerror() are kept.
 */
void resolve_refresh(void);

#endif
