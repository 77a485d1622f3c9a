/* SPDX-License-Identifier: Apache-2.0 */
#include "base/array.h"

#include <stdlib.h>

bool array_grow(void *items, uint32_t *capacity, size_t item_bytes, uint32_t first)
{
    void *list;
    memcpy(&list, items, sizeof list); /* whatever it points to */
    if (*capacity > UINT32_MAX / 2)
        return false;
    uint32_t wanted = *capacity ? 2 * *capacity : first;
    list = reallocarray(list, wanted, item_bytes);
    if (!list)
        return false;
    memcpy(items, &list, sizeof list);
    *capacity = wanted;
    return true;
}

void *array_reach(void *items, uint32_t *count, uint32_t index, size_t item_bytes)
{
    if (index < *count)
        return items;
    uint32_t wanted = index < UINT32_MAX / 2 ? 2 * index + 64 : UINT32_MAX;
    char *grown = reallocarray(items, wanted, item_bytes);
    if (grown) {
        memset(grown + *count * item_bytes, 0, (wanted - *count) * item_bytes);
        *count = wanted;
    }
    return grown;
}

static int compare_numbers(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return ORDER(a, b);
}

void array_sort(double *list, uint32_t count)
{
    if (count)
        qsort(list, count, sizeof *list, compare_numbers);
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
    if (count)
        qsort(list, count, sizeof *list, compare_whole);
}
