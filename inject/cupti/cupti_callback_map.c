/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/cupti_callback_map.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define NAME_BYTES_MAX 128

#define CUPTI_CALLBACK(id, cbid, since)                                                            \
    _Static_assert((cbid) > 0 && (cbid) < CUPTI_CBID_MAX && (since) <= UINT16_MAX, #id);
#include "cupti/cupti_callbacks.def"

const struct cupti_callback_row cupti_callback_rows[] = {
#define CUPTI_CALLBACK(id, cbid, since) {API_INDEX_##id, cbid, since},
#include "cupti/cupti_callbacks.def"
};
const unsigned cupti_callback_count = sizeof cupti_callback_rows / sizeof cupti_callback_rows[0];

static bool name_is(const struct cupti_callback_row *row, const char *name)
{
    char expected[NAME_BYTES_MAX];
    const char *symbol = api_functions[row->api].symbol;
    if (!row->since)
        return strcmp(name, symbol) == 0;
    int length = snprintf(expected, sizeof expected, "%s_v%u", symbol, row->since);
    return length > 0 && (size_t)length < sizeof expected && strcmp(name, expected) == 0;
}

unsigned cupti_callback_map_fill(struct cupti_callback_map *map, cupti_callback_name_fn get_name)
{
    unsigned count = 0;
    memset(map, 0, sizeof *map);
    for (unsigned i = 0; i < cupti_callback_count; i++) {
        const struct cupti_callback_row *row = &cupti_callback_rows[i];
        enum api_domain domain = (enum api_domain)api_functions[row->api].domain;
        const char *name = NULL;
        if (get_name(cupti_callback_domain(domain), row->cbid, &name) != CUPTI_SUCCESS || !name ||
            !name_is(row, name))
            continue;
        map->api[domain][row->cbid] = (uint16_t)(row->api + 1);
        count++;
    }
    return count;
}
