/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/pairing.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "error.h"

static int compare_keys(const struct pairing_entry *a, const struct pairing_entry *b)
{
    for (unsigned i = 0; i < 3; i++)
        if (a->key[i] != b->key[i])
            return a->key[i] < b->key[i] ? -1 : 1;
    return 0;
}

static int compare_entries(const void *left, const void *right)
{
    const struct pairing_entry *a = left, *b = right;
    int order = compare_keys(a, b);
    if (order || a->side != b->side)
        return order ? order : a->side < b->side ? -1 : 1;
    if (a->order != b->order)
        return a->order < b->order ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

void pairing_sort(struct pairing_entry *list, uint32_t count)
{
    if (count)
        qsort(list, count, sizeof *list, compare_entries);
}

void pairing_run(const struct pairing_entry *list, uint32_t count, uint32_t from, uint32_t *middle,
                 uint32_t *end)
{
    *middle = from;
    while (*middle < count && !list[*middle].side && compare_keys(&list[from], &list[*middle]) == 0)
        ++*middle;
    *end = *middle;
    while (*end < count && compare_keys(&list[from], &list[*end]) == 0)
        ++*end;
}

static double difference(const struct pairing_entry *a, const struct pairing_entry *b)
{
    return fabs(log((a->ns + 1) / (b->ns + 1)));
}

/*
 * Which of the `many` each of the `few` is: partner[i], rising. costs[i][j] is what the first i of
 * the few cost at least with partners among the first i + j of the many, of which j are left out.
 */
static int align(const struct pairing_entry *few, uint32_t few_count,
                 const struct pairing_entry *many, uint32_t spare, uint32_t *partner)
{
    size_t width = spare + 1u;
    double *costs = calloc((few_count + 1u) * width, sizeof *costs);
    if (!costs)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 1; i <= few_count; i++)
        for (uint32_t j = 0; j <= spare; j++) {
            double with = costs[(i - 1) * width + j] + difference(&few[i - 1], &many[i - 1 + j]);
            double without = j ? costs[i * width + j - 1] : INFINITY;
            costs[i * width + j] = with <= without ? with : without;
        }
    uint32_t j = spare;
    for (uint32_t i = few_count; i > 0; i--) {
        while (j && costs[i * width + j] == costs[i * width + j - 1])
            j--;
        partner[i - 1] = i - 1 + j;
    }
    free(costs);
    return 0;
}

static int pair_run(const struct pairing_entry *base, uint32_t base_count,
                    const struct pairing_entry *other, uint32_t other_count,
                    pairing_found_fn *found, void *context)
{
    bool swapped = base_count > other_count;
    const struct pairing_entry *few = swapped ? other : base, *many = swapped ? base : other;
    uint32_t few_count = swapped ? other_count : base_count;
    uint32_t spare = (swapped ? base_count : other_count) - few_count;
    uint32_t *partner = calloc(few_count, sizeof *partner);
    int error = partner ? 0 : GPUPROF_NO_MEMORY;
    bool fits = ((uint64_t)few_count + 1) * (spare + 1ull) <= PAIRING_CELLS_MAX;
    for (uint32_t i = 0; error == 0 && i < few_count; i++)
        partner[i] = i;
    if (error == 0 && spare && fits)
        error = align(few, few_count, many, spare, partner);
    for (uint32_t i = 0; error == 0 && i < few_count; i++)
        error = swapped ? found(context, &many[partner[i]], &few[i])
                        : found(context, &few[i], &many[partner[i]]);
    free(partner);
    return error;
}

int pairing_make(struct pairing_entry *list, uint32_t count, bool only_single,
                 pairing_found_fn *found, void *context)
{
    int error = 0;
    pairing_sort(list, count);
    for (uint32_t at = 0, middle, end; error == 0 && at < count; at = end) {
        pairing_run(list, count, at, &middle, &end);
        if (middle > at && end > middle && (!only_single || end - at == 2))
            error = pair_run(list + at, middle - at, list + middle, end - middle, found, context);
    }
    return error;
}

static int compare_texts(const void *left, const void *right)
{
    const struct numbered *a = left, *b = right;
    if (!a->text || !b->text)
        return (a->text != NULL) - (b->text != NULL);
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    return memcmp(a->text, b->text, a->length);
}

void number_texts(struct numbered *list, uint32_t count)
{
    uint32_t number = 0;
    if (count)
        qsort(list, count, sizeof *list, compare_texts);
    for (uint32_t i = 0; i < count; i++) {
        number += list[i].text && (i == 0 || compare_texts(&list[i - 1], &list[i]) != 0);
        *list[i].number = list[i].text ? number : 0;
    }
}
