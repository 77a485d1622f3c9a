/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which item of an array is the same as this one? A hash set of the items' numbers, from 1 on; the
 * array is its owner's. Memory: 8 to 16 bytes an item.
 */
#ifndef GPUPROF_COLLECTOR_NUMBER_SET_H
#define GPUPROF_COLLECTOR_NUMBER_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
