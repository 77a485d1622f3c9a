/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that are open on a thread, and what lies inside which: by where their structs lie on
 * the stack, or by CUPTI's word for those that no hook saw. One is the rule, and then it is in the
 * thread's `open` alone; more are listed, the newest last. Calls of this file are made inside our
 * own code (call_enter), but for those that say otherwise.
 */
#ifndef GPUPROF_INJECT_CALLS_OPEN_H
#define GPUPROF_INJECT_CALLS_OPEN_H

#include "hook/call_place.h"

/*
 * Who else sees calls, and tells of those that no hook sees (call_begin_seen): one at most, from
 * when it begins on. Any thread asks it.
 */
struct call_watcher {
    bool (*shows)(unsigned code); /* does it tell of all calls of that function from now on? */
    bool (*is_deaf)(void);        /* will it tell of no more ends of calls? */
};
void call_watch(const struct call_watcher *w);

const struct call_watcher *call_watcher(void); /* NULL: nobody */

/* How many calls thread.opens lists: it is looked at only if it says so. */
static inline uint32_t open_listed(const struct thread *t)
{
    return call_has(t, CALL_LISTED) ? t->open_count : 0;
}

static inline uint32_t open_count(const struct thread *t)
{
    return call_newest(t) && !open_listed(t) ? 1 : open_listed(t);
}

/* Where the open call `c` is; open_count if it is not open any more. */
uint32_t open_find(const struct thread *t, const struct call *c);

/* The record of an open call of this site; NULL: it has none, or the program wrote over it. */
uint64_t *open_record(struct thread *t, uint32_t i, const struct call_site *site);

/* The newest open call comes on top of those that are open already; there is room for it. */
void open_push(struct thread *t, struct call *c, bool is_recorded);

/* As many calls are open as can be: gives up the oldest that stands on another stack than `c`. */
bool open_give_up_one(struct thread *t, const struct call *c);

/* An open call's record becomes whole, if it has one, and the call is forgotten; or as stale. */
void open_close(struct thread *t, uint32_t i, uint32_t stack, uint32_t weight);
void open_close_stale(struct thread *t, uint32_t i);

/* The same for those that ended on another thread; and, as stale, for those from `first` on that
 * are not on the stack any more. */
void open_close_moved(struct thread *t);
void open_close_left(struct thread *t, uint32_t first, const struct call *inner);

/*
 * Is what `caller` calls part of an open call; of one that is passed by or left out? 0: a call that
 * only CUPTI saw.
 */
bool open_has_part(struct thread *t, const struct call *c, const struct call_site *site,
                   uintptr_t caller);
bool open_passed_has_part(struct thread *t, const struct call *c, uintptr_t caller);

/* True: not to be recorded, because we are inside our own code on this thread; counted, but for
 * what CUDA calls. */
bool call_is_inside(struct thread *t, const struct call *c, uintptr_t caller);

/* The same, uncounted. */
bool call_is_inside_quietly(struct thread *t, const struct call *c, uintptr_t caller);

/* The newest that is open, or NULL; and whether its frame is still above `inner` on the stack. */
struct seen_call *call_newest_seen(struct thread *t);
bool call_seen_is_live(const struct seen_call *s, const void *inner);

/* Does `inner` lie inside an open call? */
bool call_is_part(struct thread *t, const struct call *inner);

/*
 * Is what a callback tells of, from the frame of `inner`, a call that is passed by or left out, or
 * part of one? CUDA makes no runtime call inside one that only callbacks saw: that is the
 * program's.
 */
bool call_is_passed(struct thread *t, const struct call *inner, bool of_runtime);

/*
 * The record of the user's own call that `inner` lies inside, if it has one; of the newest where it
 * is not known which that is.
 */
uint64_t *call_outer_record(struct thread *t, const struct call *inner);

#endif
