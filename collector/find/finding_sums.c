/* SPDX-License-Identifier: Apache-2.0 */
#include "find/finding_sums.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "error.h"

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

static bool is_of(const struct finding_sum *row, uint32_t kind, uint32_t device, uint64_t what,
                  uint32_t where)
{
    return row->kind == kind && row->device == device && row->what == what && row->where == where;
}

/* The row's place + 1; 0: there is no room for another one. */
static int find(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                uint32_t where, uint32_t *place)
{
    uint32_t *recent =
        &s->recent[(what ^ what >> 8 ^ where ^ device ^ kind << 4) % FINDING_SUMS_RECENT];
    struct key key = {(uint64_t)kind << 32 | device, what, where};
    *place = *recent;
    if (*place && is_of(&s->rows[*place - 1], kind, device, what, where))
        return 0;
    *place = (uint32_t)key_map_get(&s->places, key);
    if (!*place && s->count < s->rows_max) {
        struct finding_sum *rows = array_room(s->rows, s->count, &s->capacity, sizeof *rows, 64);
        if (!rows)
            return GPUPROF_NO_MEMORY;
        s->rows = rows;
        rows[s->count] =
            (struct finding_sum){.kind = kind, .device = device, .what = what, .where = where};
        *place = s->count + 1;
        if (key_map_set(&s->places, key, *place) < 0)
            return GPUPROF_NO_MEMORY;
        s->count++;
    }
    *recent = *place;
    return 0;
}

int finding_sums_add(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                     uint32_t where, uint64_t ns, uint64_t at_ns)
{
    uint32_t place;
    int error = find(s, kind, device, what, where, &place);
    if (error == 0 && !place && where)
        error = find(s, kind, device, what, 0, &place);
    if (error < 0 || !place)
        return error;
    struct finding_sum *row = &s->rows[place - 1];
    row->count++;
    row->ns += ns;
    if (ns > row->longest_ns || row->count == 1) {
        row->longest_ns = ns;
        row->at_ns = at_ns;
    }
    return 0;
}
