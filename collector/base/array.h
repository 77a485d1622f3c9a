/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that grow (see memory.h: without memory the program ends), sorting of numbers, and binary
 * search in sorted arrays. */
#ifndef GPUPROF_COLLECTOR_ARRAY_H
#define GPUPROF_COLLECTOR_ARRAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/*
 * Makes sure that `items`, malloc'ed memory for `capacity` items, has room for one more than
 * `count`. Doubles it if not; the first allocation has `first` items.
 */
#define ARRAY_ROOM(items, count, capacity, first)                                                  \
    ((count) < (capacity) ? (void)0 : array_grow(&(items), &(capacity), sizeof *(items), first))

void array_grow(void *items, uint32_t *capacity, size_t item_bytes, uint32_t first);

/*
 * Appends *item (NULL: zeros) to the *count items of *list. Only this function may grow the list,
 * as it derives the allocated size from *count.
 */
void array_push(void *list, uint32_t *count, size_t item_bytes, const void *item);
#define ARRAY_PUSH(list, count, item)                                                              \
    array_push(&(list), &(count), sizeof *(list), 1 ? (item) : (list))

/* Grows `items`, malloc'ed memory for *count items, so that it includes item `index`; new items are
 * zeroed. */
void *array_reach(void *items, uint32_t *count, uint32_t index, size_t item_bytes);

/* Returns how many of `count` items have at most `most` in `member`: the index of the first item
 * that has more. The items are sorted by `member`, a uint64_t, in rising order. */
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

/* Inserts *item into `list`, sorted by `is_before`, behind the items that are equal to it. The list
 * has room for `most` items: when it is full, the last item (perhaps *item) is dropped. */
typedef bool array_before_fn(const void *item, const void *other);
void array_keep(void *list, uint32_t *count, uint32_t most, size_t item_bytes, const void *item,
                array_before_fn *is_before);
#define ARRAY_KEEP(list, count, most, item, is_before)                                             \
    array_keep(list, &(count), most, sizeof *(list), 1 ? (item) : (list), is_before)

/* Sorts a list, which is NULL if it has no items: qsort must not see that. */
#define ARRAY_SORT(list, count, compare)                                                           \
    ((count) ? qsort(list, count, sizeof *(list), compare) : (void)0)

/* Compares two numbers for qsort. */
#define ORDER(a, b) (((a) > (b)) - ((a) < (b)))

/* Compares two texts, given by pointers to them, for qsort and bsearch. */
int compare_texts(const void *left, const void *right);

/* Sort numbers in rising order; none may be NAN. */
void array_sort(double *list, uint32_t count);
void array_sort_whole(uint64_t *list, size_t count);

/* Sorts the list too and returns the middle number; `count` > 0. */
double array_median(double *list, uint32_t count);

static inline uint64_t min_of(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t max_of(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* How long both times last. */
static inline uint64_t overlap_ns(uint64_t begin_ns, uint64_t end_ns, uint64_t other_begin_ns,
                                  uint64_t other_end_ns)
{
    uint64_t from_ns = max_of(begin_ns, other_begin_ns), to_ns = min_of(end_ns, other_end_ns);
    return to_ns > from_ns ? to_ns - from_ns : 0;
}

#endif
