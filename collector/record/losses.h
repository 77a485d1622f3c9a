/* SPDX-License-Identifier: Apache-2.0 */
/* The losses of a process, as text and as a table for writers. */
#ifndef GPUPROF_COLLECTOR_LOSSES_H
#define GPUPROF_COLLECTOR_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "record.h"

/* Of one process, or the sum of many (losses.def). */
struct losses {
#define LOSS(key, ...) uint64_t key;
#include "record/losses.def"
    uint64_t counters[COUNTER_COUNT]; /* counted by the process itself (counters.def) */
};

enum loss_weight {
    LOSS_NONE,    /* information only */
    LOSS_COUNTED, /* something is missing: exit code 3 with --strict */
    LOSS_DAMAGE,  /* a file is damaged: exit code 3 */
};

struct loss_info {
    const char *key;  /* as in otherData.losses */
    const char *text; /* what is counted, or what happened */
    enum loss_weight weight;
    bool is_count;
    bool leaves_out; /* counts what is recorded in part on purpose, which is no loss */
    bool is_found;   /* a file that recover wrote says it */
};

/* The rows: first those of struct losses, then the counters. */
#define LOSS_COUNT (sizeof(struct losses) / sizeof(uint64_t))
struct loss_info loss_info(unsigned row);
uint64_t loss_value(const struct losses *l, unsigned row);

/*
 * Upper limit of a counter, or a position in a thread's stream, when the first `ns` of the
 * recording are stored. Larger values are corrupt.
 */
uint64_t losses_believable(uint64_t ns);

/* The heaviest of the losses that are not zero. */
enum loss_weight losses_weight(const struct losses *l);

/* Describes all that is missing, "12 blocks damaged, ..."; "" if nothing is. Returns `text`. */
char *losses_text(const struct losses *l, char *text, size_t capacity);

/*
 * Losses that `gpuprof recover` found and that its output file cannot show, as "key=count key=count
 * ..."; and the reverse, added to `l`.
 */
char *losses_found_text(const struct losses *l, char *text, size_t capacity);
void losses_found_read(struct losses *l, const char *text);

/* Adds b to a; a yes-or-no loss then counts processes. */
void losses_add(struct losses *a, const struct losses *b);

#endif
