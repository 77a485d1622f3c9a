/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges and the step that are open while nothing is recorded: kept in a bounded table until they
 * end or a recording begins. Pushed ranges are on their thread's list; started ones belong to the
 * process. There is one step, whose record belongs to the thread that began it.
 */
#ifndef GPUPROF_INJECT_DEFERRED_RANGES_H
#define GPUPROF_INJECT_DEFERRED_RANGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"

#define DEFERRED_ANY_DOMAIN UINT32_MAX

struct deferred {
    _Atomic uint32_t owner;   /* tid, or a mark of deferred_ranges.c; 0: free */
    uint32_t below;           /* the thread's previous one: index + 1; for a step, a tid */
    uint8_t type;             /* enum record_type */
    uint64_t begin;           /* in ticks */
    uint64_t id;              /* of a started range; or the step's number */
    struct range_event event; /* with the texts and data that follow */
    struct range_data data;
    char text[RANGE_TEXT_BYTES_MAX];
};

/* A thread's list, newest first. */
struct deferred_list {
    uint32_t first; /* index + 1; 0: empty */
    /* the owner in its entries; an entry with another owner is no longer on the list */
    uint32_t owner;
};

/* Returns false, and counts it, if there is no space. */
bool deferred_push(struct deferred_list *list, uint8_t type, const struct range_event *e);

/*
 * Takes the newest range of that domain off the list; the caller releases it. NULL: there is none.
 */
struct deferred *deferred_pop(struct deferred_list *list, uint32_t domain);
void deferred_release(struct deferred *k);

/* Counts the ranges of that domain on the list. */
uint32_t deferred_count(const struct deferred_list *list, uint32_t domain);
void deferred_reverse(struct deferred_list *list);

/* Keeps a started range. Counted if there is no space. */
void deferred_share(uint64_t id, const struct range_event *e);

/* Takes any started range, which the caller releases; NULL: there is none. */
struct deferred *deferred_take_shared(void);

/* The range has ended. Returns false if it is not here. */
bool deferred_drop_shared(uint64_t id);

/* Keeps a step of this thread in place of the previous one. Counted if there is no space. */
void deferred_step(uint64_t number);

/* Takes the step if this thread began it, if the thread that did is gone, or if `whosever`; the
 * caller releases it. NULL: there is none. */
struct deferred *deferred_take_step(bool whosever);
bool deferred_has_step(void);

/* Another step has begun. */
void deferred_drop_step(void);

extern _Atomic uint32_t deferred_shared_count;

/* May there be a started range? */
static inline bool deferred_is_waiting(void)
{
    return atomic_load_explicit(&deferred_shared_count, memory_order_relaxed) != 0;
}

#endif
