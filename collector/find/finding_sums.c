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

static bool is_of(const struct finding_sum *row, uint32_t kind, uint32_t device, uint64_t what)
{
    return row->kind == kind && row->device == device && row->what == what;
}

/* The row's place + 1; 0: there is no room for another one. */
static int find(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                uint32_t *place)
{
    uint32_t *recent = &s->recent[(what ^ what >> 8 ^ device ^ kind << 4) % FINDING_SUMS_RECENT];
    struct key key = {(uint64_t)kind << 32 | device, what, 0};
    *place = *recent;
    if (*place && is_of(&s->rows[*place - 1], kind, device, what))
        return 0;
    *place = (uint32_t)key_map_get(&s->places, key);
    if (!*place && s->count < s->rows_max) {
        struct finding_sum *rows = array_room(s->rows, s->count, &s->capacity, sizeof *rows, 64);
        if (!rows)
            return GPUPROF_NO_MEMORY;
        s->rows = rows;
        rows[s->count] = (struct finding_sum){.kind = kind, .device = device, .what = what};
        *place = s->count + 1;
        if (key_map_set(&s->places, key, *place) < 0)
            return GPUPROF_NO_MEMORY;
        s->count++;
    }
    *recent = *place;
    return 0;
}

int finding_sums_add(struct finding_sums *s, uint32_t kind, uint32_t device, uint64_t what,
                     uint64_t ns, uint64_t at_ns)
{
    uint32_t place;
    int error = find(s, kind, device, what, &place);
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

uint32_t finding_sums_top(const struct finding_sums *s, uint32_t kind, uint32_t device,
                          const struct finding_sum **top, uint32_t most)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        const struct finding_sum *row = &s->rows[i];
        if (row->kind != kind || row->device != device)
            continue;
        uint32_t place = count < most ? count++ : most;
        if (place == most && top[--place]->ns >= row->ns)
            continue;
        for (; place && top[place - 1]->ns < row->ns; place--)
            top[place] = top[place - 1];
        top[place] = row;
    }
    return count;
}
