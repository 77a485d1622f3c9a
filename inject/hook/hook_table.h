/* SPDX-License-Identifier: Apache-2.0 */
/* Maps names to hooks: every intercepted symbol with the address of our wrapper. The hash table is
 * built at the first look-up of a name that begins like a CUDA name. */
#ifndef GPUPROF_INJECT_HOOK_TABLE_H
#define GPUPROF_INJECT_HOOK_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "api/api.h"

/*
 * Indexes of the pointers to real functions: the API rows (formats/api/api.h), then the HOOK rows.
 */
enum hook_slot {
    HOOK_SLOT_FIRST = API_FUNCTION_COUNT - 1,
#define HOOK(symbol, ...) HOOK_SLOT_##symbol,
#include "api/api.def"
    HOOK_SLOT_COUNT
};

/* The libraries of the rows. */
enum hook_domain {
#define HOOK(symbol, domain, ...) HOOK_DOMAIN_##symbol = API_##domain,
#include "api/api.def"
};

struct hook {
    const char *symbol;
    void *wrapper;         /* our exported function, which programs get */
    uint16_t slot;         /* index of its real pointer; for a DISPATCH row, of the older form */
    uint8_t domain;        /* enum api_domain */
    const char *proc_name; /* its name for cuGetProcAddress; NULL: none */
    uint32_t proc_version;
    uint32_t proc_flags;
};

extern const struct hook hooks[];
extern const uint32_t hook_count;

/* Returns whether the name begins like the names in the table. */
static inline bool hook_name_possible(const char *name)
{
    name += name[0] == '_' && name[1] == '_' ? 2 : 0;
    return false
#define API_DOMAIN(NAME, its_name, prefix, ...) || strncmp(name, prefix, sizeof prefix - 1) == 0
#include "api/api.def"
        ;
}

/* Returns the row of an exported symbol, or NULL. */
const struct hook *hook_find(const char *symbol);

/* Returns the row whose wrapper is at `address`, or NULL. */
const struct hook *hook_of_wrapper(const void *address);

#endif
