/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a hand-written wrapper of a HOOK row find its real function, with the row's type. */
#ifndef GPUPROF_INJECT_HOOK_REAL_H
#define GPUPROF_INJECT_HOOK_REAL_H

#include "hook/resolve.h"
#include "record/thread.h"

/* The real function of the wrapper `symbol` in which this is expanded; NULL if there is none. */
#define HOOK_REAL(symbol)                                                                          \
    ((__typeof__(&symbol))hook_real(HOOK_SLOT_##symbol, (enum api_domain)HOOK_DOMAIN_##symbol,     \
                                    #symbol, (uintptr_t)__builtin_return_address(0)))

static inline void *hook_real(unsigned slot, enum api_domain domain, const char *symbol,
                              uintptr_t caller)
{
    struct binding unbound;
    uintptr_t stand_in = this_thread.stand_in;
    const struct binding *b = resolve(slot, domain, symbol, caller, &unbound);
    this_thread.stand_in = stand_in; /* only recorded calls use that */
    return b ? b->real : NULL;
}

#endif
