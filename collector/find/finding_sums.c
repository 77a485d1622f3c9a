/* SPDX-License-Identifier: Apache-2.0 */
#include "find/finding_sums.h"

#include <stdlib.h>

void finding_sums_init(struct finding_sums *s, uint64_t bytes)
{
    uint64_t more = bytes / FINDING_SUM_BYTES;
    uint64_t most = FINDING_SUMS_MAX - FINDING_SUMS_FREE;
    *s = (struct finding_sums){.rows_max =
                                   FINDING_SUMS_FREE + (uint32_t)(more < most ? more : most)};
}

void finding_sums_release(struct finding_sums *s)
{
    free(s->rows);
    key_map_release(&s->places);
}

int finding_sums_find(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                      uint32_t where, uint32_t *recent, uint32_t *place)
{
    struct key key = {(uint64_t)kind << 32 | device, what, where};
    const struct finding_sum new = {.kind = kind, .device = device, .what = what, .where = where};
    int error = KEY_MAP_ITEM(&s->places, key, s->rows, s->count, s->rows_max, &new, place);
    *recent = *place;
    return error;
}
