/* SPDX-License-Identifier: Apache-2.0 */
/* A hash map from three numbers to one that is not 0, bounded by its owner's maximum; and sets. */
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

/*
 * Which item of an array is the same as this one? A hash set of the items' numbers, from 1 on; the
 * array is its owner's. Memory: 8 to 16 bytes an item.
 */

/* What the items are. Those without a hash are the same if they begin with the same `key_bytes`,
 * which then have no padding. */
struct number_kind {
    size_t item_bytes, key_bytes;
    uint32_t (*hash)(const void *item);
    bool (*same)(const void *a, const void *b);
};

/* Of structs that begin with what tells them apart, up to the member `last`. */
#define NUMBER_KEY(type, last)                                                                     \
    {                                                                                              \
        .item_bytes = sizeof(type),                                                                \
        .key_bytes = offsetof(type, last) + sizeof((const type *)NULL)->last                       \
    }

/* For texts. */
uint32_t text_hash(const char *text, size_t length);

struct number_set {
    uint32_t *slots; /* owned; 0: free */
    uint32_t slot_count;
};

void number_set_release(struct number_set *s);

/*
 * Where the number of the item that is the same as `item` is, or where it would go, which is 0.
 * `items` has `count` of them, all in the set. A view until the next call; NULL: no memory.
 */
uint32_t *number_set_find(struct number_set *s, const struct number_kind *kind, const void *items,
                          uint32_t count, const void *item);

/*
 * The number of the item in `items`, which ARRAY_PUSH alone lets grow, and of which there are
 * `count`; one that is not there is added. 0: there are `count_max`; or GPUPROF_NO_MEMORY.
 */
#define NUMBER_ADD(set, kind, items, count, count_max, item)                                       \
    number_set_add(set, kind, &(items), &(count), count_max, 1 ? (item) : (items))

int64_t number_set_add(struct number_set *s, const struct number_kind *kind, void *items,
                       uint32_t *count, uint32_t count_max, const void *item);

#endif
