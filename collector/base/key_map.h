/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from three numbers to one that is not 0. Its size is bounded by its owner's maximum.
 */
#ifndef GPUPROF_COLLECTOR_KEY_MAP_H
#define GPUPROF_COLLECTOR_KEY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct key {
    uint64_t a, b, c;
};

struct key_slot {
    struct key key;
    uint64_t value; /* 0: free */
};

struct key_map {
    struct key_slot *slots; /* owned */
    uint32_t slot_count;
    uint32_t count;
    uint32_t count_max; /* 0: KEY_MAP_MAX */
};

#define KEY_MAP_MAX (1u << 20)

void key_map_release(struct key_map *m);

static inline uint64_t key_hash(struct key k)
{
    uint64_t hash = (k.a ^ (k.b << 29 | k.b >> 35)) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ k.c) * 0xC2B2AE3D27D4EB4Fu;
    return hash ^ hash >> 29;
}

static inline bool key_same(struct key x, struct key y)
{
    return x.a == y.a && x.b == y.b && x.c == y.c;
}

/* Where the key is, or where it would go. */
static inline uint32_t key_find(const struct key_slot *slots, uint32_t slot_count, struct key key)
{
    uint32_t at = (uint32_t)key_hash(key) & (slot_count - 1);
    while (slots[at].value && !key_same(slots[at].key, key))
        at = (at + 1) & (slot_count - 1);
    return at;
}

/* The value, 0 if there is none. */
static inline uint64_t key_map_get(const struct key_map *m, struct key key)
{
    return m->count ? m->slots[key_find(m->slots, m->slot_count, key)].value : 0;
}

/*
 * Adds or changes; `value` is not 0. 0, GPUPROF_NO_MEMORY, or GPUPROF_LIMIT if the map is full,
 * which leaves it as it was.
 */
int key_map_set(struct key_map *m, struct key key, uint64_t value);

/* The same for a map of at most `count_max` that is emptied when it is full. 0 or
 * GPUPROF_NO_MEMORY.
 */
int key_map_set_anew(struct key_map *m, struct key key, uint64_t value, uint32_t count_max);

/*
 * The number, from 1 on, of the item of *list (array_push) that `map` knows by the key: *item, or
 * zeros, behind the *count others, if it knows none. *number 0: `most` items are there, or the map
 * is full. 0 or GPUPROF_NO_MEMORY.
 */
int key_map_item(struct key_map *m, struct key key, void *list, uint32_t *count, size_t item_bytes,
                 uint32_t most, const void *item, uint32_t *number);
#define KEY_MAP_ITEM(map, key, list, count, most, item, number)                                    \
    key_map_item(map, key, &(list), &(count), sizeof *(list), most, 1 ? (item) : (list), number)

void key_map_remove(struct key_map *m, struct key key);

#endif
