/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory each process has on each device, record by record: what it has allocated, and
 * what is reserved for it, which is more where a pool of stream-ordered allocations keeps what was
 * freed. Of a pool counts the size that CUPTI tells with each operation on it; other memory is
 * reserved as long as it is allocated.
 */
#ifndef GPUPROF_COLLECTOR_DEVICE_MEMORY_H
#define GPUPROF_COLLECTOR_DEVICE_MEMORY_H

#include <stdbool.h>

#include "base/key_map.h"
#include "model/timeline.h"

#define DEVICE_MEMORY_PLACES_MAX 4096 /* devices of all processes; of more nothing is kept */

struct memory_totals {
    uint64_t allocated;
    uint64_t outside; /* the part of it that is in no pool */
    uint64_t pooled;  /* sizes of the pools */
    bool has_pool;
};

struct device_memory {
    struct key_map places;        /* (process, device) -> place in totals + 1 */
    struct key_map pools;         /* (process, device, pool) -> bytes + 1 */
    struct memory_totals *totals; /* owned */
    uint32_t count;
    uint32_t capacity;
};

void device_memory_init(struct device_memory *m);
void device_memory_release(struct device_memory *m);

/*
 * Takes a MEMORY or a POOL record. What its device has after it in *totals; the host's memory is
 * that of a device of its own. 0 or GPUPROF_NO_MEMORY.
 */
int device_memory_take(struct device_memory *m, const struct event *event,
                       struct memory_totals *totals);

/* What is reserved; at least what is allocated, whatever a file says. */
static inline uint64_t memory_reserved(const struct memory_totals *t)
{
    uint64_t reserved = t->outside + t->pooled;
    return reserved > t->allocated ? reserved : t->allocated;
}

#endif
