/* SPDX-License-Identifier: Apache-2.0 */
/*
 * name -> hook: every intercepted symbol with the address of our wrapper, found by a hash table
 * that is built at the first look-up of a name that begins like CUDA's.
 */
#ifndef GPUPROF_INJECT_HOOK_TABLE_H
#define GPUPROF_INJECT_HOOK_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* Slots of real pointers: the API rows (formats/api/api.h), then the HOOK rows. */
enum hook_slot {
    HOOK_SLOT_FIRST = API_FUNCTION_COUNT - 1,
#define HOOK(id, ...) HOOK_SLOT_##id,
#include "api/api.def"
    HOOK_SLOT_COUNT
};

struct hook {
    const char *symbol;
    void *wrapper;         /* what programs get; our exported function */
    uint16_t slot;         /* of its real pointer; of the older form for a DISPATCH row */
    uint8_t domain;        /* enum api_domain */
    const char *proc_name; /* driver: name for cuGetProcAddress, NULL if it has none */
    uint32_t proc_version;
    uint32_t proc_flags;
};

extern const struct hook hooks[];
extern const uint32_t hook_count;

/* True for "cu" and "__cuda", the only names that may be in the table. */
static inline bool hook_name_possible(const char *name)
{
    return (name[0] == 'c' && name[1] == 'u') ||
           (name[0] == '_' && name[1] == '_' && name[2] == 'c' && name[3] == 'u');
}

/* The row of an exported symbol, or NULL. */
const struct hook *hook_find(const char *symbol);

/* The row whose wrapper `address` is, or NULL. */
const struct hook *hook_of_wrapper(const void *address);

#endif
