/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include "base/memory.h"

#define ITEMS_FIRST 8u

void array_grow(void *items, uint32_t *capacity, size_t item_bytes, uint32_t first)
{
    void *list;
    memcpy(&list, items, sizeof list); /* `items` points to a pointer of some type */
    if (*capacity > UINT32_MAX / 2)
        memory_missing();
    *capacity = *capacity ? 2 * *capacity : first;
    list = memory_resize(list, *capacity, item_bytes);
    memcpy(items, &list, sizeof list);
}

void array_push(void *list, uint32_t *count, size_t item_bytes, const void *item)
{
    char *items;
    memcpy(&items, list, sizeof items);
    if (*count > UINT32_MAX / 2)
        memory_missing();
    if ((*count & (*count - 1)) == 0) { /* *count is 0 or a power of two: the list may be full */
        items =
            memory_resize(items, 2 * *count > ITEMS_FIRST ? 2 * *count : ITEMS_FIRST, item_bytes);
        memcpy(list, &items, sizeof items);
    }
    if (item)
        memcpy(items + *count * item_bytes, item, item_bytes);
    else
        memset(items + *count * item_bytes, 0, item_bytes);
    ++*count;
}

void *array_reach(void *items, uint32_t *count, uint32_t index, size_t item_bytes)
{
    if (index < *count)
        return items;
    uint32_t wanted = index < UINT32_MAX / 2 ? 2 * index + 64 : UINT32_MAX;
    char *grown = memory_resize(items, wanted, item_bytes);
    memset(grown + *count * item_bytes, 0, (wanted - *count) * item_bytes);
    *count = wanted;
    return grown;
}

void array_keep(void *list, uint32_t *count, uint32_t most, size_t item_bytes, const void *item,
                array_before_fn *is_before)
{
    char *items = list;
    uint32_t place = *count;
    while (place && is_before(item, items + (place - 1) * item_bytes))
        place--;
    if (place == most)
        return;
    *count += *count < most;
    memmove(items + (place + 1) * item_bytes, items + place * item_bytes,
            (*count - place - 1) * item_bytes);
    memcpy(items + place * item_bytes, item, item_bytes);
}

int compare_texts(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return ORDER(a, b);
}

void array_sort(double *list, uint32_t count)
{
    ARRAY_SORT(list, count, compare_numbers);
}

double array_median(double *list, uint32_t count)
{
    array_sort(list, count);
    return (list[count / 2] + list[(count - 1) / 2]) / 2;
}

static int compare_whole(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return ORDER(a, b);
}

void array_sort_whole(uint64_t *list, size_t count)
{
    ARRAY_SORT(list, count, compare_whole);
}
