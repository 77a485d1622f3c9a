/* SPDX-License-Identifier: Apache-2.0 */
#include "read/block_index.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "read/process.h"

/* Can `b`, which follows `a`, join it? Only neighbours of one file, and not stored with live ones.
 */
static bool joins(const struct block_index *x, const struct index_entry *a,
                  const struct index_entry *b)
{
    return !b->apart && a->process == b->process &&
           (a->offset & LIVE_BLOCK) == (b->offset & LIVE_BLOCK) &&
           (uint64_t)a->count + b->count <= x->run_max;
}

static void join(struct index_entry *a, const struct index_entry *b)
{
    a->count += b->count;
    if (b->time < a->time)
        a->time = b->time;
    if (b->end > a->end)
        a->end = b->end;
    a->types = a->types && b->types ? a->types | b->types : 0;
}

/* How many entries there may be, so many processes being there before the newest. */
static uint32_t room_of(const struct block_index *x, uint32_t processes)
{
    uint64_t room = BLOCK_INDEX_ONE + (uint64_t)BLOCK_INDEX_EACH * processes;
    return x->entries_max ? x->entries_max
                          : (uint32_t)(room < BLOCK_INDEX_MAX ? room : BLOCK_INDEX_MAX);
}

/* Doubles what an entry may stand for until a quarter of the room is free. */
static void coalesce(struct block_index *x, uint32_t room)
{
    while (x->count > room / 4 * 3 && x->run_max < BLOCK_RUN_MAX) {
        uint32_t kept = 0;
        x->run_max *= 2;
        for (uint32_t i = 1; i < x->count; i++) {
            if (joins(x, &x->entries[kept], &x->entries[i]))
                join(&x->entries[kept], &x->entries[i]);
            else
                x->entries[++kept] = x->entries[i];
        }
        x->count = kept + 1;
    }
}

int block_index_add(struct block_index *x, uint32_t process, uint64_t offset,
                    const struct block_header *h, bool apart)
{
    struct index_entry entry = {.offset = offset,
                                .time = h->min_ns,
                                .end = h->max_ns,
                                .types = h->types,
                                .process = process,
                                .count = 1,
                                .apart = apart};
    if (!x->run_max)
        x->run_max = 1;
    if (x->count && joins(x, &x->entries[x->count - 1], &entry)) {
        join(&x->entries[x->count - 1], &entry);
        return 0;
    }
    uint32_t room = room_of(x, process);
    if (x->count >= room)
        coalesce(x, room);
    return ARRAY_PUSH(x->entries, x->count, &entry);
}

void block_index_drop(struct block_index *x, uint32_t process)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->count; i++)
        if (x->entries[i].process != process)
            x->entries[kept++] = x->entries[i];
    x->count = kept;
}

void block_index_renumber(struct block_index *x, const uint32_t *numbers)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < x->count; i++) {
        uint32_t number = numbers[x->entries[i].process];
        if (number == UINT32_MAX)
            continue;
        x->entries[kept] = x->entries[i];
        x->entries[kept++].process = number;
    }
    x->count = kept;
}

static int compare_entries(const void *left, const void *right)
{
    const struct index_entry *a = left, *b = right;
    return ORDER(a->time, b->time) ?: ORDER(a->process, b->process) ?: ORDER(a->offset, b->offset);
}

void block_index_sort(struct block_index *x)
{
    if (x->count)
        qsort(x->entries, x->count, sizeof *x->entries, compare_entries);
}

void block_index_release(struct block_index *x)
{
    free(x->entries);
    *x = (struct block_index){0};
}
