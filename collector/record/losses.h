/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a process, in words and as a table for those who write them down. */
#ifndef GPUPROF_COLLECTOR_LOSSES_H
#define GPUPROF_COLLECTOR_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Of the process, or of many added up (losses.def). */
struct losses {
#define LOSS(key, ...) uint64_t key;
#include "record/losses.def"
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
#define LOSS_COUNT (sizeof(struct losses) / sizeof(uint64_t))
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
