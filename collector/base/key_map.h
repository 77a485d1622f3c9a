/* SPDX-License-Identifier: Apache-2.0 */
/* A bounded hash map from three numbers to a nonzero number, and hash sets of array items. */
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

/* Returns the slot that holds the key, or the free slot where it would go. */
static inline uint32_t key_find(const struct key_slot *slots, uint32_t slot_count, struct key key)
{
    uint32_t at = (uint32_t)key_hash(key) & (slot_count - 1);
    while (slots[at].value && !key_same(slots[at].key, key))
        at = (at + 1) & (slot_count - 1);
    return at;
}

/* Returns the value, or 0 if there is none. */
static inline uint64_t key_map_get(const struct key_map *m, struct key key)
{
    return m->count ? m->slots[key_find(m->slots, m->slot_count, key)].value : 0;
}

/* Adds or changes an entry; `value` is not 0. Returns 0, or GPUPROF_LIMIT if the map is full, which
 * changes nothing. */
int key_map_set(struct key_map *m, struct key key, uint64_t value);

/* The same for a cache of at most `count_max` entries that is emptied when full. */
void key_map_set_anew(struct key_map *m, struct key key, uint64_t value, uint32_t count_max);

/* Finds the item of *list (array_push) that `map` has for the key, or appends *item (NULL: zeros)
 * for a new key. Returns its number, from 1; 0 if `most` items exist or the map is full. */
uint32_t key_map_item(struct key_map *m, const struct key *key, void *list, uint32_t *count,
                      size_t item_bytes, uint32_t most, const void *item);
#define KEY_MAP_ITEM(map, key, list, count, most, item)                                            \
    key_map_item(map, &(key), &(list), &(count), sizeof *(list), most, 1 ? (item) : (list))

void key_map_remove(struct key_map *m, struct key key);

/* A hash set of the items of an array, by their numbers from 1 on: it finds duplicates. The caller
 * owns the array. Memory: 8 to 16 bytes an item. Without a hash function, items are equal if their
 * first `key_bytes` bytes are; these have no padding. */
struct number_kind {
    size_t item_bytes, key_bytes;
    uint32_t (*hash)(const void *item);
    bool (*same)(const void *a, const void *b);
};

/* For structs whose key is everything up to the member `last`. */
#define NUMBER_KEY(type, last)                                                                     \
    {                                                                                              \
        .item_bytes = sizeof(type),                                                                \
        .key_bytes = offsetof(type, last) + sizeof((const type *)NULL)->last                       \
    }

/* Adds bytes to a hash, at first 0. Not cryptographic. */
uint64_t bytes_hash(uint64_t hash, const void *data, size_t length);

/* For texts. */
static inline uint32_t text_hash(const char *text, size_t length)
{
    return (uint32_t)bytes_hash(0, text, length);
}

struct number_set {
    uint32_t *slots; /* owned; 0: free */
    uint32_t slot_count;
};

void number_set_release(struct number_set *s);

/* Returns the slot with the number of an equal item, or a slot with 0 where it would go. `items`
 * has `count` items, all in the set. The slot is a view until the next call. */
uint32_t *number_set_find(struct number_set *s, const struct number_kind *kind, const void *items,
                          uint32_t count, const void *item);

/* Returns the number of an equal item in `items`, or appends it. Only ARRAY_PUSH may grow `items`.
 * Returns 0 if the array has `count_max` items. */
#define NUMBER_ADD(set, kind, items, count, count_max, item)                                       \
    number_set_add(set, kind, &(items), &(count), count_max, 1 ? (item) : (items))

uint32_t number_set_add(struct number_set *s, const struct number_kind *kind, void *items,
                        uint32_t *count, uint32_t count_max, const void *item);

#endif
