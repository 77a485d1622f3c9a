/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow, sorting numbers, and looking things up in what is in order. */
#ifndef GPUPROF_COLLECTOR_ARRAY_H
#define GPUPROF_COLLECTOR_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Has `items`, malloc'ed memory for `capacity` of them, room for one more than `count`? If not, it
 * gets twice as much, at first for `first`. False: no memory, and all is as before.
 */
#define ARRAY_ROOM(items, count, capacity, first)                                                  \
    ((count) < (capacity) || array_grow(&(items), &(capacity), sizeof *(items), first))

bool array_grow(void *items, uint32_t *capacity, size_t item_bytes, uint32_t first);

/*
 * Adds *item (NULL: zeros) behind the *count items of *list, malloc'ed memory whose size follows
 * from *count: it is grown here alone. 0 or GPUPROF_NO_MEMORY, and then both are as before.
 */
int array_push(void *list, uint32_t *count, size_t item_bytes, const void *item);
#define ARRAY_PUSH(list, count, item)                                                              \
    array_push(&(list), &(count), sizeof *(list), 1 ? (item) : (list))

/*
 * Makes room for item `index` in `items`, malloc'ed memory for *count of them, which then is more;
 * new items are zeroed. NULL: no memory, and both are as before.
 */
void *array_reach(void *items, uint32_t *count, uint32_t index, size_t item_bytes);

/*
 * How many of `count` items have at most `most` in `member`, a uint64_t by which they are in rising
 * order: the place of the first that has more.
 */
#define ARRAY_UP_TO(items, count, member, most)                                                    \
    array_up_to(items, count, sizeof *(items), offsetof(__typeof__(*(items)), member), most)

static inline uint32_t array_up_to(const void *items, uint32_t count, size_t item_bytes,
                                   size_t offset, uint64_t most)
{
    uint32_t low = 0;
    while (low < count) {
        uint32_t middle = low + (count - low) / 2;
        uint64_t number;
        memcpy(&number, (const char *)items + middle * item_bytes + offset, sizeof number);
        if (number <= most)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

/*
 * Puts *item into `list`, which has room for `most` items and is in the order of `is_before`:
 * behind those that it is not before. The last one goes if there is no room; *item itself if it is
 * that.
 */
typedef bool array_before_fn(const void *item, const void *other);
void array_keep(void *list, uint32_t *count, uint32_t most, size_t item_bytes, const void *item,
                array_before_fn *is_before);
#define ARRAY_KEEP(list, count, most, item, is_before)                                             \
    array_keep(list, &(count), most, sizeof *(list), 1 ? (item) : (list), is_before)

/* How two numbers stand to each other, as qsort wants to know it. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Two texts, by pointers to them, for qsort and bsearch. */
int compare_texts(const void *left, const void *right);

/* Bring numbers, none of which is NAN, into rising order. */
void array_sort(double *list, uint32_t count);
void array_sort_whole(uint64_t *list, size_t count);

/* The same, and returns the middle one of `count` > 0. */
double array_median(double *list, uint32_t count);

#endif
