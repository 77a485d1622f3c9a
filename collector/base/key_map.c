/* SPDX-License-Identifier: Apache-2.0 */
#include "base/key_map.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "error.h"

void key_map_release(struct key_map *m)
{
    free(m->slots);
    *m = (struct key_map){.count_max = m->count_max};
}

static void key_map_grow(struct key_map *m)
{
    uint32_t slot_count = m->slot_count ? 2 * m->slot_count : 16;
    struct key_slot *slots = memory_new(slot_count, sizeof *slots);
    for (uint32_t i = 0; i < m->slot_count; i++)
        if (m->slots[i].value)
            slots[key_find(slots, slot_count, m->slots[i].key)] = m->slots[i];
    free(m->slots);
    m->slots = slots;
    m->slot_count = slot_count;
}

int key_map_set(struct key_map *m, struct key key, uint64_t value)
{
    uint32_t count_max = m->count_max ? m->count_max : KEY_MAP_MAX;
    assert(value != 0);
    if (m->count >= m->slot_count / 2)
        key_map_grow(m);
    struct key_slot *slot = &m->slots[key_find(m->slots, m->slot_count, key)];
    if (!slot->value) {
        if (m->count >= count_max)
            return GPUPROF_LIMIT;
        m->count++;
    }
    *slot = (struct key_slot){.key = key, .value = value};
    return 0;
}

uint32_t key_map_item(struct key_map *m, const struct key *key, void *list, uint32_t *count,
                      size_t item_bytes, uint32_t most, const void *item)
{
    uint32_t number = (uint32_t)key_map_get(m, *key);
    if (number || *count >= most || key_map_set(m, *key, *count + 1ull) < 0)
        return number;
    array_push(list, count, item_bytes, item);
    return *count;
}

void key_map_set_anew(struct key_map *m, struct key key, uint64_t value, uint32_t count_max)
{
    m->count_max = count_max;
    if (key_map_set(m, key, value) == 0)
        return;
    key_map_release(m);
    key_map_set(m, key, value);
}

/* Entries behind the hole move up if they could not stand at their own place. */
void key_map_remove(struct key_map *m, struct key key)
{
    if (!m->count)
        return;
    uint32_t mask = m->slot_count - 1;
    uint32_t hole = key_find(m->slots, m->slot_count, key);
    if (!m->slots[hole].value)
        return;
    for (uint32_t at = (hole + 1) & mask; m->slots[at].value; at = (at + 1) & mask) {
        uint32_t home = (uint32_t)key_hash(m->slots[at].key) & mask;
        if (((at - home) & mask) < ((at - hole) & mask))
            continue;
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole].value = 0;
    m->count--;
    assert(!key_map_get(m, key));
}

/* ---- sets of numbers ------------------------------------------------------------------------- */

#define SLOTS_FIRST 64 /* power of two */

void number_set_release(struct number_set *s)
{
    free(s->slots);
    *s = (struct number_set){0};
}

uint64_t bytes_hash(uint64_t hash, const void *data, size_t length)
{
    const uint8_t *at = data;
    hash ^= length;
    for (uint64_t word; length >= sizeof word; at += sizeof word, length -= sizeof word) {
        memcpy(&word, at, sizeof word);
        hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
        hash ^= hash >> 32;
    }
    for (; length; at++, length--)
        hash = (hash ^ *at) * 0x100000001B3u;
    return hash ^ hash >> 29;
}

static const void *item_of(const struct number_kind *kind, const void *items, uint32_t number)
{
    return (const char *)items + (number - 1) * kind->item_bytes;
}

static bool are_same(const struct number_kind *kind, const void *a, const void *b)
{
    return kind->same ? kind->same(a, b) : memcmp(a, b, kind->key_bytes) == 0;
}

static uint32_t *key_map_find(const struct number_set *s, const struct number_kind *kind,
                              const void *items, const void *item)
{
    uint32_t hash = kind->hash ? kind->hash(item) : text_hash(item, kind->key_bytes);
    uint32_t at = hash & (s->slot_count - 1);
    while (s->slots[at] && !are_same(kind, item_of(kind, items, s->slots[at]), item))
        at = (at + 1) & (s->slot_count - 1);
    return &s->slots[at];
}

static void grow_set(struct number_set *s, const struct number_kind *kind, const void *items,
                     uint32_t count)
{
    uint32_t slot_count = s->slot_count ? 2 * s->slot_count : SLOTS_FIRST;
    free(s->slots);
    s->slots = memory_new(slot_count, sizeof *s->slots);
    s->slot_count = slot_count;
    for (uint32_t number = 1; number <= count; number++)
        *key_map_find(s, kind, items, item_of(kind, items, number)) = number;
}

uint32_t *number_set_find(struct number_set *s, const struct number_kind *kind, const void *items,
                          uint32_t count, const void *item)
{
    if (count >= s->slot_count / 2)
        grow_set(s, kind, items, count);
    uint32_t *place = key_map_find(s, kind, items, item);
    assert(*place <= count);
    return place;
}

uint32_t number_set_add(struct number_set *s, const struct number_kind *kind, void *items,
                        uint32_t *count, uint32_t count_max, const void *item)
{
    const void *list;
    memcpy(&list, items, sizeof list); /* `items` points to a pointer of some type */
    uint32_t *number = number_set_find(s, kind, list, *count, item);
    if (*number || *count >= count_max)
        return *number;
    array_push(items, count, kind->item_bytes, item);
    return *number = *count;
}
