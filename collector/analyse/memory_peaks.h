/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The peak memory of each process on each device, by the ledger's books, within the selection of
 * the walk's filter; and signs of memory problems: whether an allocation failed, and roughly how
 * much each process had over time. Only if that looks like a fault, memory_report.h makes books by
 * owner and step, in walks of its own, so that healthy programs cost no more.
 *
 * Memory: 4000 bytes a device of a process.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_PEAKS_H
#define GPUPROF_COLLECTOR_MEMORY_PEAKS_H

#include "base/array.h"
#include "memory/memory_report.h"

#define SIGNS_STEPS 8 /* fewer show no growth */

#define SIGNS_GROWN_MIN  (16ull << 20) /* bytes: a smaller leak does not matter, ... */
#define SIGNS_GROWN_PART 50            /* ... nor one below this fraction of the peak */
#define SIGNS_FULL       0.7           /* of a device: from here on it pays to need less */
#define SIGNS_BLOCK      0.25          /* of a peak: one block makes it */
#define SIGNS_IDLE       0.3           /* of the reserved memory: this much is in no tensor */

/* Memory of CUDA, or of PyTorch's allocator, over the whole recording. */
struct memory_trend {
    uint64_t live;
    uint64_t peak;
    uint64_t last_block;          /* bytes of the block that made the peak */
    uint64_t reserved;            /* by PyTorch's allocator, at the peak */
    uint32_t at;                  /* current slice of the process's time */
    uint64_t least[MEMORY_CURVE]; /* minimum in each slice */
};

/* A place of the ledger's totals. */
struct memory_peak {
    uint64_t allocated;
    uint64_t reserved;      /* 0: no pools */
    uint64_t now_allocated; /* current value, since since_ns */
    uint64_t now_reserved;
    uint64_t since_ns;
    uint64_t begin_ns; /* time of the process, from the headers of its blocks */
    uint64_t end_ns;
    struct memory_trend trends[2]; /* of CUDA and of PyTorch's allocator; not of the host */
};

struct memory_peaks {
    struct ledger ledger;
    struct memory_peak *list; /* owned, as the totals of the ledger */
    uint32_t capacity;
    uint64_t *device_bytes; /* owned, by process index: from a query of the program; 0: none */
    uint64_t ooms;          /* failed allocations */
    bool any;               /* there was an allocation, a failed one, or a query */
};

/* The ledger is the consumer for `walk`, which must outlive `m`; `m` must not move. */
void memory_peaks_init(struct memory_peaks *m, struct walk *walk);
void memory_peaks_release(struct memory_peaks *m);

/* The places that had blocks are below this one. */
static inline uint32_t memory_peaks_count(const struct memory_peaks *m)
{
    return (uint32_t)min_of(m->capacity, m->ledger.totals.count);
}

/* Call after the walk: completes the peaks. */
void memory_peaks_finish(struct memory_peaks *m);

/* Call after the walk: true if memory seems to grow from step to step, or if its peak could be
 * lower where that matters. */
bool memory_peaks_show_fault(const struct memory_peaks *m, const struct steps *steps);

#endif
