/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The open calls of a thread, and which call is inside which, known from the stack addresses of
 * their structs, or from CUPTI's callbacks for calls without a hook. Usually one call is open, and
 * only the thread's `open` holds it. Several are listed, newest last. Call these functions inside
 * our own code (call_enter), except where noted.
 */
#ifndef GPUPROF_INJECT_CALLS_OPEN_H
#define GPUPROF_INJECT_CALLS_OPEN_H

#include "hook/call_place.h"

/* Another module that sees calls and reports those without a hook (call_begin_seen). There is at
 * most one, which stays for good. Any thread may call it. */
struct call_watcher {
    bool (*shows)(unsigned code); /* returns whether it reports all calls of a function */
    bool (*is_detached)(void);    /* returns whether it will report no more ends of calls */
};
void call_watch(const struct call_watcher *w);

const struct call_watcher *call_watcher(void); /* NULL: none */

/* Number of calls in thread.opens, which is valid only if this is not 0. */
static inline uint32_t open_listed(const struct thread *t)
{
    return call_has(t, CALL_LISTED) ? t->open_count : 0;
}

static inline uint32_t open_count(const struct thread *t)
{
    return call_newest(t) && !open_listed(t) ? 1 : open_listed(t);
}

/* Returns the index of the open call `c`, or open_count if it is not open. */
uint32_t open_find(const struct thread *t, const struct call *c);

/* Returns the record of an open call of this function; NULL: it has none, or the program has
 * overwritten it. */
uint64_t *open_record(struct thread *t, uint32_t i, const struct call_site *site);

/* Adds a newest open call; there must be space. */
void open_push(struct thread *t, struct call *c, bool is_recorded);

/* The list of open calls is full: closes the oldest on another stack than `c`. Returns false if
 * there is none. */
bool open_give_up_one(struct thread *t, const struct call *c);

/*
 * Completes an open call's record, if it has one, and removes the call; or closes it as abandoned.
 */
void open_close(struct thread *t, uint32_t i, uint32_t stack, uint32_t weight);
void open_close_abandoned(struct thread *t, uint32_t i);

/* The same for calls that ended on another thread; and, as abandoned, for those from `first` on
 * that are no longer on the stack. */
void open_close_moved(struct thread *t);
void open_close_left(struct thread *t, uint32_t first, const struct call *inner);

/* Return whether a call from `caller` (0: a call that only CUPTI saw) is part of an open call, or
 * of one that is passed by or left out. */
bool open_has_part(struct thread *t, const struct call *c, const struct call_site *site,
                   uintptr_t caller);
bool open_passed_has_part(struct thread *t, const struct call *c, uintptr_t caller);

/* Returns true if the call is not recorded because this thread is in our own code. Counts it,
 * unless CUDA made it. */
bool call_is_inside(struct thread *t, const struct call *c, uintptr_t caller);

/* The same without counting. */
bool call_is_inside_quietly(struct thread *t, const struct call *c, uintptr_t caller);

/* Returns the newest open CUPTI-only call, or NULL; and whether its frame is still above `inner` on
 * the stack. */
struct seen_call *call_newest_seen(struct thread *t);
bool call_seen_is_live(const struct seen_call *s, const void *inner);

/* Returns whether `inner` is inside an open call. */
bool call_is_part(struct thread *t, const struct call *inner);

/*
 * Returns whether the call that a callback reports, from the frame of `inner`, is passed by or left
 * out, or part of such a call. CUDA makes no runtime calls inside a call that only callbacks saw,
 * so a runtime call there is the program's.
 */
bool call_is_passed(struct thread *t, const struct call *inner, bool of_runtime);

/* Returns the record of the user's call around `inner`, if it has one. If that call is not known,
 * returns the newest one's record. */
uint64_t *call_outer_record(struct thread *t, const struct call *inner);

#endif
