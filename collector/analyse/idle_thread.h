/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did last: its calls, one behind the other, and what it was in while it made them
 * that says more than they do (data loading, a capture, a range that ended before the next call).
 * Memory: 96 bytes a call or time between two, IDLE_ENTRIES_MAX of a thread at most; older ones are
 * forgotten.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_THREAD_H
#define GPUPROF_COLLECTOR_IDLE_THREAD_H

#include "analyse/idle_rows.h"
#include "record/gpu_record.h"

#define IDLE_ENTRIES_MAX 128

/* Calls of a thread that are closer than that follow each other at once. */
#define IDLE_NEAR_NS 50000u

/* A thread that makes no call for so long does something else. */
#define IDLE_NOTHING_NS 5000000000u

/* A thread is looked at after silences from about here on (run --silence). */
#define IDLE_SILENT_NS 1000000u

#define IDLE_SPENT_MAX 8 /* names of ranges that are told apart between two calls */

struct idle_entry {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t since_ns; /* begin of the operator or range that the place is of; 0: of none */
    struct idle_place place;
    struct silence_look look; /* of the time before it, but for what lies in the entry before */
    uint8_t cause;            /* enum idle_cause */
    bool waits;               /* for the device, and for all of it that was asked for before */
    bool is_open;             /* it never returned */
    bool is_around;           /* the stack is that of an operator around, too */
};

/* How long ranges or operators of one name were open since the last call. */
struct idle_spent {
    struct idle_place place;
    uint64_t ns;
};

/*
 * The last silence after which the thread was looked at. That has a bound: a later silence between
 * calls of the same functions, after which it was not, is taken for one like it.
 */
struct idle_silence {
    uint64_t ns; /* how long it was; 0: there was none yet */
    struct silence_look look;
    uint32_t stack;    /* of the call that ended it, ... */
    uint32_t function; /* ... what it called, ... */
    uint32_t from;     /* ... and the call before */
    bool is_pending;   /* the call that ended it has still to come */
};

struct idle_thread {
    uint32_t index; /* of its struct thread */
    struct idle_silence silence;
    struct idle_entry *entries; /* owned: a ring; in the order of time, none overlaps another */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
    bool has_forgotten;
    uint32_t depth; /* of what it is in; 0: in nothing */
    struct idle_entry in;
    struct idle_spent spent[IDLE_SPENT_MAX];
    uint32_t spent_count;
    uint64_t spent_since_ns; /* the end of the call that `spent` is behind */
    uint64_t work_ns;        /* of devices, that its calls made */
};

void idle_thread_release(struct idle_thread *t);

static inline struct idle_entry *idle_thread_entry(const struct idle_thread *t, uint32_t index)
{
    uint32_t at = t->first + index;
    return &t->entries[at < t->capacity ? at : at - t->capacity];
}

static inline struct idle_entry *idle_thread_last(const struct idle_thread *t)
{
    return t->count ? idle_thread_entry(t, t->count - 1) : NULL;
}

/* If `entry` is behind `last`, and more of the same, that goes on until its end. */
static inline bool idle_entry_go_on(struct idle_entry *last, const struct idle_entry *entry)
{
    if (entry->begin_ns < last->end_ns || entry->begin_ns - last->end_ns >= IDLE_NEAR_NS ||
        !idle_place_same(&last->place, &entry->place) || last->cause != entry->cause ||
        last->waits != entry->waits || last->is_open)
        return false;
    last->end_ns = entry->end_ns;
    last->is_open = entry->is_open;
    return true;
}

/* Is it a call, and not the time between two? */
static inline bool idle_entry_is_call(const struct idle_entry *e)
{
    return e->cause != IDLE_HOST && e->cause != IDLE_NOTHING;
}

/* Whatever the thread is in. If one range or operator that has ended took at least half of the
 * time since the call before, the innermost such is an entry of its own in between. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_thread_append(struct idle_thread *t, const struct idle_entry *entry);

/* Is it loading, by a call that is not recorded? It says nothing of the time before it. */
static inline bool idle_entry_is_loading(const struct idle_entry *e)
{
    return e->place.kind == IDLE_WORD_OURS;
}

/* A call, unless the thread is in something; in the order of time. 0 or GPUPROF_NO_MEMORY. */
static inline int idle_thread_call(struct idle_thread *t, const struct idle_entry *call)
{
    return t->depth ? 0 : idle_thread_append(t, call);
}

/* Between these the thread is in that; calls from its begin on were made in it. 0 or
 * GPUPROF_NO_MEMORY. */
void idle_thread_enter(struct idle_thread *t, const struct idle_entry *what);
int idle_thread_leave(struct idle_thread *t, const struct idle_entry *what);

/* A range or operator, named by `place`, has ended. */
void idle_thread_ended(struct idle_thread *t, struct idle_place place, uint64_t begin_ns,
                       uint64_t end_ns);

/* A part of its last call, or some of the time after that, was loading. 0 or GPUPROF_NO_MEMORY. */
int idle_thread_part(struct idle_thread *t, const struct idle_entry *part);

#endif
