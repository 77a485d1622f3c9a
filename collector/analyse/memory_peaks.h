/* SPDX-License-Identifier: Apache-2.0 */
/* The most memory that each process had on each device, in the piece that the walk's filter has, by
 * the ledger's books: a walk keeps these once, for others, too. */
#ifndef GPUPROF_COLLECTOR_MEMORY_PEAKS_H
#define GPUPROF_COLLECTOR_MEMORY_PEAKS_H

#include "memory/ledger.h"

struct memory_peak {
    uint64_t allocated;
    uint64_t reserved;      /* 0: no pools */
    uint64_t now_allocated; /* what it has had since then */
    uint64_t now_reserved;
    uint64_t since_ns;
};

struct memory_peaks {
    struct ledger ledger;
    struct ledger_totals totals;
    struct memory_peak *list; /* owned, as totals.list */
    uint32_t capacity;
    struct ledger_user also; /* is told of all that the ledger tells; its functions may be NULL */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; memory_peaks_release in both cases. */
int memory_peaks_init(struct memory_peaks *m, struct walk *walk);
void memory_peaks_release(struct memory_peaks *m);

/* To be handed to a walk; `m` must stay where it is. */
struct consumer memory_peaks_consumer(struct memory_peaks *m);

/* After it: the peaks are complete. */
void memory_peaks_finish(struct memory_peaks *m);

#endif
