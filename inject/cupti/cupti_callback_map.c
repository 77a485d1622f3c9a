/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_callback_map.h"

#include <stdlib.h>
#include <string.h>

#define NAME_BYTES_MAX 128
#define SLOTS          4096 /* power of two; larger than needed, so that few entries collide */

_Static_assert(2 * API_FUNCTION_COUNT < SLOTS, "a search ends at an empty slot");

/* Functions that have one symbol but two ABIs. */
static const struct {
    uint16_t low;
    uint16_t high;
    uint32_t high_since;
} forms[] = {
#define DISPATCH(symbol, domain, returns, params, names, low_id, high_id, high_first, high_since)  \
    {API_CODE_##low_id, API_CODE_##high_id, high_since},
#include "api/api.def"
};

static unsigned cupti_callback_map_slot_of(const char *symbol)
{
    uint32_t hash = 2166136261u;
    for (; *symbol; symbol++)
        hash = (hash ^ (uint8_t)*symbol) * 16777619u;
    return hash & (SLOTS - 1);
}

/* Returns the slot with the first row of that symbol, or the empty slot where it belongs. */
static unsigned cupti_callback_map_find(const uint16_t *slots, const char *symbol)
{
    unsigned slot = cupti_callback_map_slot_of(symbol);
    while (slots[slot] && strcmp(api_functions[slots[slot] - 1].symbol, symbol) != 0)
        slot = (slot + 1) & (SLOTS - 1);
    return slot;
}

/* Returns row + 1 of the function that CUPTI calls `name` in this domain; 0: none. */
static uint16_t cupti_callback_map_row_of(const uint16_t *slots, CUpti_CallbackDomain domain,
                                          const char *name)
{
    char symbol[NAME_BYTES_MAX];
    size_t length = strlen(name);
    uint32_t since = 0;
    if (length >= sizeof symbol)
        return 0;
    memcpy(symbol, name, length + 1);
    /* Names of runtime functions end in the version that introduced them: cudaMalloc_v3020. */
    char *version = domain == CUPTI_CB_DOMAIN_RUNTIME_API ? strrchr(symbol, '_') : NULL;
    if (version && version[1] == 'v') {
        since = (uint32_t)strtoul(version + 2, NULL, 10);
        *version = '\0';
    }
    uint16_t row = slots[cupti_callback_map_find(slots, symbol)];
    if (!row || api_libraries[api_functions[row - 1].domain].cupti != domain)
        return 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
        if (forms[i].low == row - 1 && since >= forms[i].high_since)
            return (uint16_t)(forms[i].high + 1);
    return row;
}

unsigned cupti_callback_map_fill(struct cupti_callback_map *map, cupti_callback_name_fn get_name)
{
    uint16_t slots[SLOTS] = {0};
    unsigned count = 0;
    memset(map, 0, sizeof *map);
    for (unsigned i = API_FUNCTION_COUNT; i > 0; i--)
        slots[cupti_callback_map_find(slots, api_functions[i - 1].symbol)] = (uint16_t)i;
    for (unsigned domain = 1; domain < CUPTI_API_DOMAINS; domain++)
        for (uint32_t cbid = 1; cbid < CUPTI_CBID_MAX; cbid++) {
            const char *name = NULL;
            if (get_name((CUpti_CallbackDomain)domain, cbid, &name) == CUPTI_SUCCESS && name)
                map->codes[domain][cbid] =
                    cupti_callback_map_row_of(slots, (CUpti_CallbackDomain)domain, name);
            count += map->codes[domain][cbid] != 0;
        }
    return count;
}
