/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory each process has on each device, and of the host: sums of the ledger's blocks, to
 * be told of each as it comes and goes. Reserved is what is allocated, and of a pool of stream-
 * ordered allocations whose size CUPTI tells that size, with what was freed and stays in it.
 */
#ifndef GPUPROF_COLLECTOR_LEDGER_TOTALS_H
#define GPUPROF_COLLECTOR_LEDGER_TOTALS_H

#include "base/key_map.h"
#include "memory/ledger.h"

#define TOTALS_PLACES_MAX 4096 /* devices of all processes; of more nothing is kept */

struct place_totals {
    const struct process *process;
    uint64_t allocated;
    uint64_t outside; /* the part of it that is in no pool of known size */
    uint64_t pooled;  /* sizes of the pools */
    uint64_t
        tensors; /* what PyTorch's allocator gave of it, and what it had when it said so last */
    uint64_t tensors_reserved;
    uint32_t device; /* LEDGER_NO_DEVICE: the host, or not known */
    bool is_host;
    bool has_pool;
    bool has_tensors;
};

struct ledger_totals {
    struct key_map places;     /* (process, device, host) -> place in list + 1 */
    struct key_map pools;      /* (process, device, pool) -> bytes + 1 */
    struct place_totals *list; /* owned */
    uint32_t count;
};

void ledger_totals_init(struct ledger_totals *t);
void ledger_totals_release(struct ledger_totals *t);

/* A block comes, or goes; a pool has that size. *changed, a view until the next call, is NULL if
 * its place is beyond the maximum. 0 or GPUPROF_NO_MEMORY. */
int ledger_totals_block(struct ledger_totals *t, const struct ledger_block *b, bool comes,
                        struct place_totals **changed);
int ledger_totals_pool(struct ledger_totals *t, const struct ledger_pool *pool,
                       struct place_totals **changed);

static inline uint64_t totals_tensors_reserved(const struct place_totals *t)
{
    return t->tensors_reserved > t->tensors ? t->tensors_reserved : t->tensors;
}

/* At least what is allocated, whatever a file says. */
static inline uint64_t totals_reserved(const struct place_totals *t)
{
    uint64_t reserved = t->outside + t->pooled;
    return reserved > t->allocated ? reserved : t->allocated;
}

#endif
