/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges that are open while nothing is recorded, and the step that lasts: kept in a bounded table
 * until they end or a recording begins. Pushed ranges are on a list of their thread's; started ones
 * belong to the process. There is one step in it, but its record is the thread's that called.
 */
#ifndef GPUPROF_INJECT_KEPT_H
#define GPUPROF_INJECT_KEPT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "range/range_event.h"

#define KEPT_ANY_DOMAIN UINT32_MAX

struct kept {
    _Atomic uint32_t owner;   /* tid, or one of kept.c's marks; 0 = free */
    uint32_t below;           /* the thread's one before it, index + 1; of a step, a tid */
    uint8_t type;             /* enum record_type */
    uint64_t begin;           /* ticks */
    uint64_t id;              /* of a started range; number of a step */
    struct range_event event; /* whose text and data are these */
    struct range_data data;
    char text[RANGE_TEXT_BYTES_MAX];
};

/* A thread's, the newest first. */
struct kept_list {
    uint32_t first; /* index + 1; 0 = empty */
    uint32_t owner; /* as in its members; what has another is no member any more */
};

/* False, and counted, if there is no room. */
bool kept_push(struct kept_list *list, uint8_t type, const struct range_event *e);

/* Takes the newest of that domain off the list; the caller releases it. NULL if there is none. */
struct kept *kept_pop(struct kept_list *list, uint32_t domain);
void kept_release(struct kept *k);

/* How many of that domain are on the list. */
uint32_t kept_count(const struct kept_list *list, uint32_t domain);
void kept_reverse(struct kept_list *list);

/* A started range. Counted if no room. */
void kept_share(uint64_t id, const struct range_event *e);

/* Takes any one of them, which the caller releases; NULL if there is none. */
struct kept *kept_take_shared(void);

/* The range has ended. False if it is not here. */
bool kept_drop_shared(uint64_t id);

/* A step of this thread's, which takes the place of the one before. Counted if no room. */
void kept_step(uint64_t number);

/* Takes it, if this thread has called it, or who has is gone, or whosever it is; the caller
 * releases it. NULL if there is none. */
struct kept *kept_take_step(bool whosever);
bool kept_has_step(void);

/* Another one has begun. */
void kept_drop_step(void);

extern _Atomic uint32_t kept_shared_count;

/* True if there may be a shared one. */
static inline bool kept_is_waiting(void)
{
    return atomic_load_explicit(&kept_shared_count, memory_order_relaxed) != 0;
}

#endif
