/* SPDX-License-Identifier: Apache-2.0 */
/* The peak memory of each process on each device, within the selection of the walk's filter, by the
 * ledger's books. */
#ifndef GPUPROF_COLLECTOR_MEMORY_PEAKS_H
#define GPUPROF_COLLECTOR_MEMORY_PEAKS_H

#include "memory/memory_signs.h"

struct memory_peak {
    uint64_t allocated;
    uint64_t reserved;      /* 0: no pools */
    uint64_t now_allocated; /* current value, since since_ns */
    uint64_t now_reserved;
    uint64_t since_ns;
};

struct memory_peaks {
    struct ledger ledger;
    struct memory_peak *list; /* owned, as the totals of the ledger */
    uint32_t capacity;
    struct memory_signs *signs; /* a view: takes the same; NULL: none */
};

/* The ledger is the consumer for `walk`, which must outlive `m`; `m` must not move. 0 or
 * GPUPROF_NO_MEMORY; call memory_peaks_release in both cases. */
int memory_peaks_init(struct memory_peaks *m, struct walk *walk);
void memory_peaks_release(struct memory_peaks *m);

/* Call after the walk: completes the peaks. */
void memory_peaks_finish(struct memory_peaks *m);

#endif
