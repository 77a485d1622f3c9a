/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last calls of a thread in order, and what it was in during them if that says more: data
 * loading, a capture, a range that ended before the next call. Memory: 96 bytes a call or time
 * between two, at most IDLE_ENTRIES_MAX a thread; older ones are forgotten.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_THREAD_H
#define GPUPROF_COLLECTOR_IDLE_THREAD_H

#include "analyse/idle_rows.h"
#include "record/gpu_record.h"

#define IDLE_ENTRIES_MAX 128

/* Calls of a thread that are closer than this count as consecutive. */
#define IDLE_NEAR_NS 50000u

/* A thread without a call for this long does something else. */
#define IDLE_NOTHING_NS 5000000000u

/* Threads are sampled after silences from about this length on (run --silence). */
#define IDLE_SILENT_NS 1000000u

#define IDLE_SPENT_MAX 8 /* distinct range names between two calls */

struct idle_entry {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint64_t since_ns; /* begin of the operator or range in `place`; 0: none */
    struct idle_place place;
    struct silence_look look; /* of the time before it, without what the previous entry covers */
    uint8_t cause;            /* enum idle_cause */
    bool waits;               /* it waits for all earlier work of the device */
    bool is_open;             /* it never returned */
    bool is_around;           /* the stack also belongs to an operator around it */
};

/* How long ranges or operators of one name were open since the last call. */
struct idle_spent {
    struct idle_place place;
    uint64_t ns;
};

/* The last silence after which the thread was sampled. Sampling has a limit: a later silence
 * between calls of the same functions that was not sampled is assumed to be like this one. */
struct idle_silence {
    uint64_t ns; /* duration; 0: none yet */
    struct silence_look look;
    uint32_t stack;    /* of the call that ended it, ... */
    uint32_t function; /* ... the function of that call, ... */
    uint32_t from;     /* ... and of the call before it */
    bool is_pending;   /* the call that ended it is not recorded yet */
};

struct idle_thread {
    uint32_t index; /* index of its struct thread */
    struct idle_silence silence;
    struct idle_entry *entries; /* owned: a ring in time order; no two overlap */
    uint32_t capacity;
    uint32_t first;
    uint32_t count;
    bool has_forgotten;
    uint32_t depth; /* nesting depth of what it is in; 0: nothing */
    struct idle_entry in;
    struct idle_spent spent[IDLE_SPENT_MAX];
    uint32_t spent_count;
    uint64_t spent_since_ns; /* end of the call before `spent` */
    uint64_t work_ns;        /* device time of the work that its calls launched */
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

/* Extends `last` to the end of `entry` if that follows and is more of the same. Returns whether it
 * did. */
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

/* True for a call, false for the time between two. */
static inline bool idle_entry_is_call(const struct idle_entry *e)
{
    return e->cause != IDLE_HOST && e->cause != IDLE_NOTHING;
}

/* Appends an entry, whatever the thread is in. If one range or operator that has ended took at
 * least half of the time since the previous call, the innermost such gets an entry in between. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_thread_append(struct idle_thread *t, const struct idle_entry *entry);

/* True if it is loading by a call that is not recorded. It says nothing about the time before
 * it. */
static inline bool idle_entry_is_loading(const struct idle_entry *e)
{
    return e->place.kind == IDLE_WORD_OURS;
}

/* Appends a call unless the thread is in something. Call in time order. 0 or GPUPROF_NO_MEMORY. */
static inline int idle_thread_call(struct idle_thread *t, const struct idle_entry *call)
{
    return t->depth ? 0 : idle_thread_append(t, call);
}

/* The thread is in `what` between these two; calls from its begin on belong to it. Leave returns 0
 * or GPUPROF_NO_MEMORY. */
void idle_thread_enter(struct idle_thread *t, const struct idle_entry *what);
int idle_thread_leave(struct idle_thread *t, const struct idle_entry *what);

/* Notes that a range or operator, named by `place`, has ended. */
void idle_thread_ended(struct idle_thread *t, struct idle_place place, uint64_t begin_ns,
                       uint64_t end_ns);

/* Marks a part of its last call, or of the time after that, as loading. 0 or GPUPROF_NO_MEMORY. */
int idle_thread_part(struct idle_thread *t, const struct idle_entry *part);

#endif
