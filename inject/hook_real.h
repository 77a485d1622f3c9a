/* SPDX-License-Identifier: Apache-2.0 */
/* How a hand-written wrapper of a HOOK row finds its real function, with the row's own type. */
#ifndef GPUPROF_INJECT_HOOK_REAL_H
#define GPUPROF_INJECT_HOOK_REAL_H

#include "resolve.h"

/* The real function behind the wrapper `id` that this is expanded in; NULL if there is none. */
#define HOOK_REAL(id, domain)                                                                      \
    ((__typeof__(&id))hook_real(                                                                   \
        resolve(HOOK_SLOT_##id, domain, #id, (uintptr_t)__builtin_return_address(0))))

static inline void *hook_real(const struct binding *b)
{
    return b ? b->real : NULL;
}

#endif
