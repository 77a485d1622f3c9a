/* SPDX-License-Identifier: Apache-2.0 */
#include "model/device_memory.h"

#include <stdlib.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

#define HOST      UINT64_MAX
#define BYTES_MAX (1ull << 61) /* of one total: sums of a few stay in range, whatever files say */

void device_memory_init(struct device_memory *m)
{
    *m = (struct device_memory){.places.count_max = DEVICE_MEMORY_PLACES_MAX};
}

void device_memory_release(struct device_memory *m)
{
    key_map_release(&m->places);
    key_map_release(&m->pools);
    free(m->totals);
    *m = (struct device_memory){0};
}

static void increase(uint64_t *total, uint64_t bytes)
{
    *total = bytes < BYTES_MAX - *total ? *total + bytes : BYTES_MAX;
}

static void decrease(uint64_t *total, uint64_t bytes)
{
    *total -= bytes < *total ? bytes : *total;
}

/* 0 and the totals, GPUPROF_LIMIT, or GPUPROF_NO_MEMORY. */
static int totals_of(struct device_memory *m, struct key key, struct memory_totals **found)
{
    uint64_t place = key_map_get(&m->places, key);
    if (!place) {
        struct memory_totals *totals =
            array_room(m->totals, m->count, &m->capacity, sizeof *totals, 8);
        if (!totals)
            return GPUPROF_NO_MEMORY;
        m->totals = totals;
        int error = key_map_set(&m->places, key, m->count + 1ull);
        if (error < 0)
            return error;
        totals[m->count] = (struct memory_totals){0};
        place = ++m->count;
    }
    *found = &m->totals[place - 1];
    return 0;
}

/* The pool has so many bytes now. GPUPROF_LIMIT: of so many pools nothing is kept. */
static int set_pool(struct device_memory *m, struct memory_totals *t, struct key key,
                    uint64_t bytes)
{
    uint64_t before = key_map_get(&m->pools, key);
    int error = 0;
    bytes = bytes < BYTES_MAX ? bytes : BYTES_MAX;
    if (bytes)
        error = key_map_set(&m->pools, key, bytes + 1);
    else
        key_map_remove(&m->pools, key);
    if (error < 0)
        return error;
    decrease(&t->pooled, before ? before - 1 : 0);
    increase(&t->pooled, bytes);
    t->has_pool = true;
    return 0;
}

/* 1: the record's memory is in a pool whose size is known; 0: it is not; or an error. */
static int take_pool(struct device_memory *m, struct memory_totals *t, struct key key,
                     const struct record *r)
{
    uint64_t bytes;
    if (r->type == RECORD_POOL) {
        if (record_arg(r, POOL_KIND) != POOL_LOCAL)
            return 0;
        bytes = record_arg(r, POOL_OPERATION) == POOL_DESTROYED ? 0 : record_arg(r, POOL_BYTES);
        key.c = record_arg(r, POOL_POOL);
    } else {
        bytes = record_arg(r, MEMORY_POOL_BYTES);
        key.c = record_arg(r, MEMORY_POOL);
        if (!key.c || !bytes--)
            return 0;
    }
    int error = set_pool(m, t, key, bytes);
    return error == GPUPROF_LIMIT ? 0 : error < 0 ? error : 1;
}

int device_memory_take(struct device_memory *m, const struct event *event,
                       struct memory_totals *totals)
{
    const struct record *r = event->record;
    struct key key = {event->process->index, record_arg(r, MEMORY_DEVICE), 0};
    struct memory_totals *t;
    *totals = (struct memory_totals){0};
    if (r->type == RECORD_POOL)
        key.b = record_arg(r, POOL_DEVICE);
    else if (!memory_is_device(record_arg(r, MEMORY_KIND)))
        key.b = HOST;
    int error = totals_of(m, key, &t);
    if (error < 0)
        return error == GPUPROF_LIMIT ? 0 : error;
    int pooled = take_pool(m, t, key, r);
    if (pooled < 0)
        return pooled;
    uint64_t bytes = record_arg(r, MEMORY_BYTES);
    if (r->type == RECORD_MEMORY && record_arg(r, MEMORY_OPERATION) == MEMORY_ALLOCATE) {
        increase(&t->allocated, bytes);
        if (!pooled)
            increase(&t->outside, bytes);
    } else if (r->type == RECORD_MEMORY && record_arg(r, MEMORY_OPERATION) == MEMORY_RELEASE) {
        decrease(&t->allocated, bytes);
        if (!pooled)
            decrease(&t->outside, bytes);
    }
    *totals = *t;
    return 0;
}
