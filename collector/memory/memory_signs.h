/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signs of memory problems, found in books that others use anyway, so that healthy programs cost no
 * more: whether an allocation failed, and roughly how much each process had over time. Only if that
 * looks like a fault, memory_report.h makes books by owner and step, in walks of its own.
 *
 * Memory: 4000 bytes a device of a process.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_SIGNS_H
#define GPUPROF_COLLECTOR_MEMORY_SIGNS_H

#include "memory/memory_report.h"

#define SIGNS_STEPS 8 /* fewer show no growth */

#define SIGNS_GROWN_MIN  (16ull << 20) /* bytes: a smaller leak does not matter, ... */
#define SIGNS_GROWN_PART 50            /* ... nor one below this fraction of the peak */
#define SIGNS_FULL       0.7           /* of a device: from here on it pays to need less */
#define SIGNS_BLOCK      0.25          /* of a peak: one block makes it */
#define SIGNS_IDLE       0.3           /* of the reserved memory: this much is in no tensor */

struct signs_book {
    uint64_t live;
    uint64_t peak;
    uint64_t last_block;          /* bytes of the block that made the peak */
    uint64_t reserved;            /* by PyTorch's allocator, at the peak */
    uint32_t at;                  /* current slice */
    uint64_t least[MEMORY_CURVE]; /* minimum in each slice */
};

/* A process on a device. */
struct signs_place {
    const struct process *process; /* NULL: none */
    uint32_t device;
    struct signs_book books[2]; /* of CUDA and of PyTorch's allocator */
};

struct memory_signs {
    struct walk *walk;
    struct signs_place *places; /* owned, by place in the ledger's totals */
    uint32_t place_count;
    struct signs_process {
        uint64_t begin_ns; /* from the headers of its blocks */
        uint64_t end_ns;
        uint64_t total; /* bytes of a device from a query of the program; 0: none */
    } * processes;      /* owned, by process index */
    uint64_t ooms;
    bool any; /* there was an allocation, a failed one, or a query */
};

/* `walk` must outlive `s`. 0 or GPUPROF_NO_MEMORY; call memory_signs_release in both cases. */
int memory_signs_init(struct memory_signs *s, struct walk *walk);
void memory_signs_release(struct memory_signs *s);

/* Take what the user of a ledger gets: a block that came or went, with its place's totals, a failed
 * allocation, and a query of free memory. 0 or GPUPROF_NO_MEMORY. */
int memory_signs_change(struct memory_signs *s, const struct ledger_block *b,
                        const struct place_totals *now, uint64_t at_ns);
void memory_signs_failed(struct memory_signs *s, const struct ledger_block *wanted);
void memory_signs_left(struct memory_signs *s, const struct ledger_free *f);

/* Call after the walk: true if memory seems to grow from step to step, or if its peak could be
 * lower where that matters. */
bool memory_signs_of_fault(const struct memory_signs *s, const struct steps *steps);

#endif
