/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a process, in words and as a table for those who write them down. */
#ifndef GPUPROF_COLLECTOR_LOSSES_H
#define GPUPROF_COLLECTOR_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* What a reader could not have, and what it found in its place. */
struct losses {
    uint64_t header_lost;        /* 0 or 1: the stream header could not be read */
    uint64_t damaged_blocks;     /* whose payload does not hold what its header says */
    uint64_t damaged_records;    /* that those held */
    uint64_t missing_blocks;     /* sequence numbers that do not occur */
    uint64_t skipped_bytes;      /* that belong to no block */
    uint64_t torn_bytes;         /* of a last block that was cut off, in no live file either */
    uint64_t missing_bytes;      /* of raw records: gaps in the threads' positions */
    uint64_t repeated_blocks;    /* left out: earlier blocks had their records, or some of them */
    uint64_t live_damaged;       /* 0 or 1: there is a live file and it cannot be read */
    uint64_t live_damaged_bytes; /* of the live file's records */
    uint64_t counters_damaged;   /* 0 or 1: some of `counters` could not be, and count less */
    uint64_t unknown_functions;  /* calls whose function nobody described */
    uint64_t not_ended;          /* 0 or 1: no END record and no live file: it was killed and ... */
    uint64_t live_records;       /* recovered from the live file: nothing is lost */
    uint64_t open_calls;         /* that had not returned */
    uint64_t running;            /* 0 or 1: the process goes on, this is a snapshot */
    uint64_t may_run;            /* 0 or 1: perhaps it does; nobody here can see it */
    uint64_t flight_unread;      /* 0 or 1: a flight recorder's memory is not read */
    uint64_t gpu_unpaired;       /* GPU work whose call is not recorded */
    uint64_t gpu_missing;        /* kernels, copies and fills that are not recorded */
    uint64_t gpu_pending;        /* the last launch of a thread that waits to the end */
    uint64_t gpu_untied;         /* launches whose GPU work could not be known from the id */
    uint64_t gpu_given_up;     /* work without its call, or launches without work, because that was
                                * given up to cost less */
    uint64_t unmatched_ranges; /* ends of ranges that had not begun */
    uint64_t deep_ranges;      /* nested too deep to be followed (range_stack.h) */
    uint64_t unmatched_ops;    /* begins and ends of operators without the other */
    uint64_t deep_ops;         /* nested too deep to be followed (op_stack.h) */
    uint64_t traced_ops;       /* that torch.compile looked at: they did nothing */
    uint64_t nvtx_ops;         /* that are known from the texts of emit_nvtx's ranges */
    uint64_t nvtx_ops_again;   /* ranges of emit_nvtx where operators were recorded, too */
    uint64_t devices_unread;   /* 0 or 1: counters of devices did not come as a whole, or no more */
    uint64_t stacks_unread;    /* records of stacks, modules and places that mean nothing */
    uint64_t counters[COUNTER_COUNT]; /* what the process counted itself (counters.def) */
};

enum loss_weight {
    LOSS_NONE,    /* worth knowing; nothing is missing */
    LOSS_COUNTED, /* something is missing: exit code 3 with --strict */
    LOSS_DAMAGE,  /* a file is damaged: exit code 3 */
};

struct loss_info {
    const char *key;  /* as in otherData.losses */
    const char *text; /* what the count counts, or what is so */
    enum loss_weight weight;
    bool is_count;
    bool leaves_out; /* what it counts is recorded only in part, as it had to be: no loss */
};

/* The rows: first those of struct losses, then the counters. */
#define LOSS_COUNT (32 + COUNTER_COUNT)
struct loss_info loss_info(unsigned row);
uint64_t loss_value(const struct losses *l, unsigned row);

/*
 * The most that a counter, or a position in what a thread recorded, can have come to if the first
 * `ns` of the recording have been stored: more was written over, or made up.
 */
uint64_t losses_believable(uint64_t ns);

/* The heaviest of the losses that are not zero. */
enum loss_weight losses_weight(const struct losses *l);

/* Everything that is missing, "12 blocks damaged, ..."; "" if nothing is. Returns `text`. */
char *losses_text(const struct losses *l, char *text, size_t capacity);

/*
 * What `gpuprof recover` found and cannot be found in the file that it wrote, "key=count key=count
 * ..."; and back again, added to `l`.
 */
char *losses_found_text(const struct losses *l, char *text, size_t capacity);
void losses_found_read(struct losses *l, const char *text);

/* Adds b to a; a yes or no counts processes then. */
void losses_add(struct losses *a, const struct losses *b);

#endif
