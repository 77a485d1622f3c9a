/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/gpu_stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

void gpu_stats_init(struct gpu_stats *s, uint64_t bytes, uint64_t *histogram_rows)
{
    uint64_t more = bytes / GPU_STATS_FILE_BYTES;
    uint64_t most = GPU_STATS_MAX - GPU_STATS_FREE;
    *s = (struct gpu_stats){
        .count_max = GPU_STATS_FREE + (uint32_t)(more < most ? more : most) - TABLE_COUNT,
        .histogram_rows = histogram_rows,
    };
}

void gpu_stats_release(struct gpu_stats *s)
{
    for (uint32_t i = 0; i < s->count; i++) {
        free(s->rows[i].name);
        histogram_release(&s->rows[i].durations);
    }
    free(s->rows);
    key_map_release(&s->places);
}

struct gpu_stat *gpu_stats_row(struct gpu_stats *s, enum gpu_table table, struct key key,
                               const char *name)
{
    struct gpu_stat *found = gpu_stats_find(s, table, key);
    if (!found && s->count >= s->count_max) {
        key = (struct key){0, UINT64_MAX, UINT64_MAX};
        name = "(others)";
        found = gpu_stats_find(s, table, key);
    }
    if (found)
        return found;
    struct gpu_stat *rows = array_room(s->rows, s->count, &s->capacity, sizeof *rows, 64);
    if (!rows)
        return NULL;
    s->rows = rows;
    struct gpu_stat *row = &rows[s->count];
    *row = (struct gpu_stat){.table = table, .min_ns = UINT64_MAX, .name = strdup(name)};
    if (!row->name)
        return NULL;
    key.a |= (uint64_t)table << GPU_STATS_TABLE_SHIFT;
    return key_map_set(&s->places, key, ++s->count) < 0 ? NULL : row;
}

void gpu_stats_join(struct gpu_stat *into, struct gpu_stat *from)
{
    into->count += from->count;
    into->total_ns += from->total_ns;
    into->bytes += from->bytes;
    into->min_ns = from->min_ns < into->min_ns ? from->min_ns : into->min_ns;
    into->max_ns = from->max_ns > into->max_ns ? from->max_ns : into->max_ns;
    histogram_move(&into->durations, &from->durations);
    from->table = TABLE_COUNT;
}
