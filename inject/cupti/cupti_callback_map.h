/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which intercepted function a CUPTI callback is about: the ids of cupti_callbacks.def, as far as
 * the loaded libcupti gives them the names that they have there.
 */
#ifndef GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H
#define GPUPROF_INJECT_CUPTI_CALLBACK_MAP_H

#include "api/api.h"
#include "cupti/cupti_abi.h"

#define CUPTI_CBID_MAX 1024 /* 13.5: 567 of the runtime, 877 of the driver */

struct cupti_callback_row {
    uint16_t api;   /* enum api_index */
    uint16_t cbid;  /* in the domain of that row */
    uint16_t since; /* see cupti_callbacks.def */
};

extern const struct cupti_callback_row cupti_callback_rows[];
extern const unsigned cupti_callback_count;

struct cupti_callback_map {
    uint16_t api[API_DOMAIN_COUNT][CUPTI_CBID_MAX]; /* enum api_index + 1; 0: not ours */
};

typedef CUptiResult (*cupti_callback_name_fn)(CUpti_CallbackDomain domain, uint32_t cbid,
                                              const char **name);

/*
 * Fills the map by asking the loaded libcupti for the name of each row's id; some 430 calls of 50
 * ns. A row whose id is unknown there, or has another name, is left out. Returns how many are in.
 */
unsigned cupti_callback_map_fill(struct cupti_callback_map *map, cupti_callback_name_fn get_name);

/* CUPTI's number of a domain. */
static inline CUpti_CallbackDomain cupti_callback_domain(enum api_domain domain)
{
    return domain == API_RUNTIME ? CUPTI_CB_DOMAIN_RUNTIME_API : CUPTI_CB_DOMAIN_DRIVER_API;
}

/* The enum api_index of a callback, or -1. From the callback: a look-up, nothing else. */
static inline int cupti_callback_api(const struct cupti_callback_map *map,
                                     CUpti_CallbackDomain domain, CUpti_CallbackId cbid)
{
    enum api_domain ours = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? API_RUNTIME : API_DRIVER;
    if (cbid >= CUPTI_CBID_MAX || cupti_callback_domain(ours) != domain)
        return -1;
    return (int)map->api[ours][cbid] - 1;
}

#endif
