/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the real function behind a hook. In order of preference: the definition of another preload
 * between us and libc, such as one that limits memory; CUDA's own library; and while neither
 * exists, any other definition, for that one call. The latter are stubs that forward: when they
 * have loaded CUDA's library, a hook that called them would be called by them.
 *
 * The driver has one real function per process, unless another preload hooks it, too. A runtime
 * function depends on the caller, since several libcudart may be loaded (one per Python extension):
 * a binding maps a caller's address range to its real function.
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
    uintptr_t low;           /* for callers in [low, low + bytes) */
    _Atomic uintptr_t bytes; /* 0: not valid yet, or no longer, since an object was unloaded */
    void *real;
    uint32_t major; /* major version of the library that `real` belongs to; 0: unknown */
    /* the library's calls own the calls of OWNERs inside them: API_OWNER */
    bool is_owners;
    bool is_own;           /* the callers are such a library, one of its parts, or a stub */
    _Atomic bool is_asked; /* a caller asked for `real` by its handle */
    _Atomic(struct binding *) next;
};

/* The first binding of each slot, nearly always the only one: its address needs no load. */
extern HIDDEN struct binding bindings[HOOK_SLOT_COUNT];

/*
 * Returns the binding; NULL if no loaded object defines the symbol. A binding for one call only is
 * written to `unbound`, which the caller provides. If it stands in for CUDA, this_thread.stand_in
 * says so until the caller restores it. Preserves errno and dlerror().
 */
const struct binding *resolve_slow(unsigned slot, enum api_domain domain, const char *symbol,
                                   uintptr_t caller, struct binding *unbound);

/* Returns the binding of the caller's module; NULL: none is known yet. */
static inline const struct binding *resolve_known(unsigned slot, uintptr_t caller)
{
    const struct binding *b = &bindings[slot];
    do {
        uintptr_t bytes = atomic_load_explicit(&b->bytes, memory_order_acquire); /* written last */
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

/* Returns the function that a call of `symbol` by the code at `caller` would reach, hooked or not;
 * NULL: none. */
void *resolve_definition(const char *symbol, uintptr_t caller);

/* Returns whether `address` is inside the library that `symbol` belongs to. */
bool resolve_is_vendors(const char *symbol, uintptr_t address);

/* Returns whether it is neither in that library nor in another preload between us and libc. */
bool resolve_is_stub(const char *symbol, uintptr_t address);

/* Returns whether the object of the code at `caller` defines the symbol itself. */
bool resolve_defines(const char *symbol, uintptr_t caller);

/* Returns whether it is that library, a part of it, or one whose calls may be inside its own. */
bool resolve_is_part(const struct object *o, enum api_domain domain);

/* Returns whether the code at `caller` is CUDA's, or another object's that hooked calls go to. */
bool resolve_is_cuda(uintptr_t caller);

/*
 * The code at `caller` asked for the hook's function (dlsym, cuGetProcAddress) and got `real`.
 * Returns true if that is CUDA's or another preload's, so that the caller may get the hook instead.
 * Its calls then go to `real`, or for a driver function to the known binding.
 */
bool resolve_asked(const struct hook *hook, uintptr_t caller, void *real);

/* Drops bindings of and into unloaded objects. Called after each dlclose, and regularly by the
 * writer for dlclose calls that bypassed our hook. Preserves errno and dlerror(). */
void resolve_refresh(void);

#endif
