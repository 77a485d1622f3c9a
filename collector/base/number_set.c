/* SPDX-License-Identifier: Apache-2.0 */
#include "base/number_set.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"

#define SLOTS_FIRST 64 /* power of two */

void number_set_release(struct number_set *s)
{
    free(s->slots);
    *s = (struct number_set){0};
}

static const void *item_of(const struct number_kind *kind, const void *items, uint32_t number)
{
    return (const char *)items + (number - 1) * kind->item_bytes;
}

static uint32_t hash_of(const struct number_kind *kind, const void *item)
{
    uint64_t hash = 0, word;
    size_t left = kind->key_bytes;
    const char *at = item;
    if (kind->hash)
        return kind->hash(item);
    for (; left >= sizeof word; at += sizeof word, left -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ hash >> 29 ^ word) * 0x9E3779B97F4A7C15u;
    }
    word = 0;
    memcpy(&word, at, left);
    hash = (hash ^ hash >> 29 ^ word) * 0xC2B2AE3D27D4EB4Fu;
    return (uint32_t)(hash >> 32);
}

static bool are_same(const struct number_kind *kind, const void *a, const void *b)
{
    return kind->same ? kind->same(a, b) : memcmp(a, b, kind->key_bytes) == 0;
}

static uint32_t *find(const struct number_set *s, const struct number_kind *kind, const void *items,
                      const void *item)
{
    uint32_t at = hash_of(kind, item) & (s->slot_count - 1);
    while (s->slots[at] && !are_same(kind, item_of(kind, items, s->slots[at]), item))
        at = (at + 1) & (s->slot_count - 1);
    return &s->slots[at];
}

static bool grow(struct number_set *s, const struct number_kind *kind, const void *items,
                 uint32_t count)
{
    uint32_t slot_count = s->slot_count ? 2 * s->slot_count : SLOTS_FIRST;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (!slots)
        return false;
    free(s->slots);
    s->slots = slots;
    s->slot_count = slot_count;
    for (uint32_t number = 1; number <= count; number++)
        *find(s, kind, items, item_of(kind, items, number)) = number;
    return true;
}

uint32_t *number_set_find(struct number_set *s, const struct number_kind *kind, const void *items,
                          uint32_t count, const void *item)
{
    if (count >= s->slot_count / 2 && !grow(s, kind, items, count))
        return NULL;
    uint32_t *place = find(s, kind, items, item);
    assert(*place <= count);
    return place;
}

int64_t number_set_add(struct number_set *s, const struct number_kind *kind, void *items,
                       uint32_t *count, uint32_t count_max, const void *item)
{
    const void *list;
    memcpy(&list, items, sizeof list); /* whatever it points to */
    uint32_t *number = number_set_find(s, kind, list, *count, item);
    if (!number)
        return GPUPROF_NO_MEMORY;
    if (*number || *count >= count_max)
        return *number;
    int error = array_push(items, count, kind->item_bytes, item);
    if (error == 0)
        *number = *count;
    return error < 0 ? error : (int64_t)*number;
}
