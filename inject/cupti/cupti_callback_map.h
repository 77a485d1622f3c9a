/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which intercepted function a CUPTI callback is about, by the names that the loaded libcupti has
 * for its ids. An id never gets another meaning, but its name may change: a major version drops the
 * _v2 of a function whose first form it has dropped.
 */
#ifndef GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H
#define GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H

#include "api/api.h"
#include "cupti/cupti_abi.h"

#define CUPTI_CBID_MAX    1024 /* 13.5: 567 of the runtime, 877 of the driver */
#define CUPTI_API_DOMAINS (CUPTI_CB_DOMAIN_RUNTIME_API + 1)

struct cupti_callback_map {
    uint16_t codes[CUPTI_API_DOMAINS][CUPTI_CBID_MAX]; /* enum api_code + 1; 0: not ours */
};

typedef CUptiResult (*cupti_callback_name_fn)(CUpti_CallbackDomain domain, uint32_t cbid,
                                              const char **name);

/*
 * Fills the map by asking the loaded libcupti for the name of every id; some 2000 calls of 50 ns.
 * Returns how many ids are in.
 */
unsigned cupti_callback_map_fill(struct cupti_callback_map *map, cupti_callback_name_fn get_name);

/* The enum api_code of a callback, or -1. From the callback: a look-up, nothing else. */
static inline int cupti_callback_code(const struct cupti_callback_map *map,
                                      CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    if (cbid >= CUPTI_CBID_MAX || (unsigned)domain >= CUPTI_API_DOMAINS)
        return -1;
    return (int)map->codes[domain][cbid] - 1;
}

#endif
