/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/ledger_totals.h"

#include <stdlib.h>

#include "error.h"

#define POOL_BYTES_MAX (1ull << 61) /* sums of a few stay in range, whatever files say */

void ledger_totals_init(struct ledger_totals *t)
{
    *t = (struct ledger_totals){.places.count_max = TOTALS_PLACES_MAX};
}

void ledger_totals_release(struct ledger_totals *t)
{
    key_map_release(&t->places);
    key_map_release(&t->pools);
    free(t->list);
    *t = (struct ledger_totals){0};
}

static int totals_of(struct ledger_totals *t, const struct process *process, uint32_t device,
                     bool is_host, struct place_totals **found)
{
    uint32_t number = is_host ? LEDGER_NO_DEVICE : device;
    struct key key = {process->index, number, is_host};
    const struct place_totals new = {.process = process, .device = number, .is_host = is_host};
    uint32_t place;
    int error = KEY_MAP_ITEM(&t->places, key, t->list, t->count, TOTALS_PLACES_MAX, &new, &place);
    *found = place ? &t->list[place - 1] : NULL;
    return error;
}

static void change(uint64_t *total, uint64_t bytes, bool comes)
{
    *total = comes ? *total + bytes : *total - (bytes < *total ? bytes : *total);
}

int ledger_totals_block(struct ledger_totals *t, const struct ledger_block *b, bool comes,
                        struct place_totals **changed)
{
    int error = totals_of(t, b->process, b->device, b->is_host, changed);
    struct place_totals *place = *changed;
    if (!place)
        return error;
    if (b->kind == LEDGER_TENSOR) {
        place->has_tensors = true;
        place->tensors_reserved = comes ? b->reserved : place->tensors_reserved;
        change(&place->tensors, b->bytes, comes);
        return 0;
    }
    change(&place->allocated, b->bytes, comes);
    if (!b->is_pooled)
        change(&place->outside, b->bytes, comes);
    return 0;
}

/* Beyond the maximum nothing is kept of a pool. */
int ledger_totals_pool(struct ledger_totals *t, const struct ledger_pool *pool,
                       struct place_totals **changed)
{
    struct key key = {pool->process->index, pool->device, pool->number};
    uint64_t bytes = pool->bytes < POOL_BYTES_MAX ? pool->bytes : POOL_BYTES_MAX;
    int error = totals_of(t, pool->process, pool->device, false, changed);
    struct place_totals *place = *changed;
    if (!place)
        return error;
    uint64_t before = key_map_get(&t->pools, key);
    if (bytes)
        error = key_map_set(&t->pools, key, bytes + 1);
    else
        key_map_remove(&t->pools, key);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    change(&place->pooled, before ? before - 1 : 0, false);
    place->pooled = place->pooled + bytes < POOL_BYTES_MAX ? place->pooled + bytes : POOL_BYTES_MAX;
    place->has_pool = true;
    return 0;
}
