/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps CUPTI's callback ids to intercepted functions, through the names that the loaded libcupti
 * has for the ids. An id never changes its meaning, but its name may change: when a major version
 * drops a function's first form, it drops the _v2 of the other one's name.
 */
#ifndef GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H
#define GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H

#include "api/api.h"
#include "cupti/cupti_abi.h"

#define CUPTI_CBID_MAX    1024 /* 13.5 has 567 for the runtime and 877 for the driver */
#define CUPTI_API_DOMAINS (CUPTI_CB_DOMAIN_RUNTIME_API + 1)

struct cupti_callback_map {
    uint16_t codes[CUPTI_API_DOMAINS][CUPTI_CBID_MAX]; /* enum api_code + 1; 0: not intercepted */
};

typedef CUptiResult (*cupti_callback_name_fn)(CUpti_CallbackDomain domain, uint32_t cbid,
                                              const char **name);

/* Fills the map by asking the loaded libcupti for the name of each id: about 2000 calls of 50 ns.
 * Returns the number of ids found. */
unsigned cupti_callback_map_fill(struct cupti_callback_map *map, cupti_callback_name_fn get_name);

/* Returns the enum api_code of a callback, or -1. Called from the callback: a look-up and nothing
 * else. */
static inline int cupti_callback_code(const struct cupti_callback_map *map,
                                      CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    if (cbid >= CUPTI_CBID_MAX || (unsigned)domain >= CUPTI_API_DOMAINS)
        return -1;
    return (int)map->codes[domain][cbid] - 1;
}

#endif
