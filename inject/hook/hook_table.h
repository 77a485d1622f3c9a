/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name -> hook: every intercepted symbol with the address of our wrapper, found by a hash table
 * that is built at the first look-up of a name that begins like CUDA's.
 */
#ifndef GPUPROF_INJECT_HOOK_TABLE_H
#define GPUPROF_INJECT_HOOK_TABLE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "api/api.h"

/* Slots of real pointers: the API rows (formats/api/api.h), then the HOOK rows. */
enum hook_slot {
    HOOK_SLOT_FIRST = API_FUNCTION_COUNT - 1,
#define HOOK(symbol, ...) HOOK_SLOT_##symbol,
#include "api/api.def"
    HOOK_SLOT_COUNT
};

/* Their libraries. */
enum hook_domain {
#define HOOK(symbol, domain, ...) HOOK_DOMAIN_##symbol = API_##domain,
#include "api/api.def"
};

struct hook {
    const char *symbol;
    void *wrapper;         /* what programs get; our exported function */
    uint16_t slot;         /* of its real pointer; of the older form for a DISPATCH row */
    uint8_t domain;        /* enum api_domain */
    const char *proc_name; /* for cuGetProcAddress, NULL if it has none */
    uint32_t proc_version;
    uint32_t proc_flags;
};

extern const struct hook hooks[];
extern const uint32_t hook_count;

/* Does it begin as all names in the table do? */
static inline bool hook_name_possible(const char *name)
{
    name += name[0] == '_' && name[1] == '_' ? 2 : 0;
    return false
#define API_DOMAIN(NAME, its_name, prefix, ...) || strncmp(name, prefix, sizeof prefix - 1) == 0
#include "api/api.def"
        ;
}

/* The row of an exported symbol, or NULL. */
const struct hook *hook_find(const char *symbol);

/* The row whose wrapper `address` is, or NULL. */
const struct hook *hook_of_wrapper(const void *address);

#endif
