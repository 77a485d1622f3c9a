/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is there anything to be said of a recording's memory? Found in books that others keep anyway, so
 * that who did nothing wrong pays for no more: whether there was not enough, and roughly, of each
 * process, how much it had over time. Only where that looks like a fault the books are kept by
 * owner and step (memory_report.h), which takes walks of its own.
 *
 * Memory: SIGNS_BYTES a process.
 */
#ifndef GPUPROF_COLLECTOR_MEMORY_SIGNS_H
#define GPUPROF_COLLECTOR_MEMORY_SIGNS_H

#include "memory/ledger.h"
#include "model/steps.h"

#define SIGNS_PIECES 240 /* that the time of a process is cut into */
#define SIGNS_BYTES  4000
#define SIGNS_STEPS  8 /* of fewer nothing is said to grow */

#define SIGNS_GROWN_MIN  (16ull << 20) /* bytes: less is no leak that matters, ... */
#define SIGNS_GROWN_PART 50            /* ... nor is less than so much of the peak */
#define SIGNS_FULL       0.7           /* of a device: it is worth to need less of it */
#define SIGNS_BLOCK      0.25          /* of a peak: it is one block that makes it */
#define SIGNS_IDLE       0.3           /* of what is reserved: that much is in no tensor */

/* What a process has, on all devices together. */
struct signs_book {
    uint64_t live;
    uint64_t peak;
    uint64_t last_block;          /* that made the peak: its bytes */
    uint64_t reserved;            /* by PyTorch's allocator, at that moment */
    uint32_t device;              /* on which it is */
    uint32_t at;                  /* piece that it is */
    uint64_t least[SIGNS_PIECES]; /* that it had in each */
};

struct memory_signs {
    struct walk *walk;
    struct signs_process {
        uint64_t begin_ns; /* by the headers of its blocks */
        uint64_t end_ns;
        struct signs_book books[2]; /* of CUDA, and of PyTorch's allocator */
        uint64_t total;             /* of a device, as the program was told; 0: it was not */
    } * processes;                  /* owned, by process index */
    uint64_t ooms;
    bool any; /* memory was got, or failed to be, or somebody asked for it */
};

/* `walk` must stay. 0 or GPUPROF_NO_MEMORY; memory_signs_release in both cases. */
int memory_signs_init(struct memory_signs *s, struct walk *walk);
void memory_signs_release(struct memory_signs *s);

/* For a ledger of that walk; `s` must stay where it is. */
struct ledger_user memory_signs_user(struct memory_signs *s);

/* After the walk. Does it look as if the program's memory grew from step to step, or as if its peak
 * could be lower where that matters? */
bool memory_signs_of_fault(const struct memory_signs *s, const struct steps *steps);

#endif
