/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/calls_open.h"

#include <string.h>

#include "base/signals.h"
#include "base/ticks.h"
#include "hook/moved.h"
#include "hook/pass_by.h"
#include "hook/resolve.h"
#include "record/stack_place.h"

static _Atomic(const struct call_watcher *) watcher; /* set once, by call_watch; NULL: none */

void call_watch(const struct call_watcher *w)
{
    atomic_store(&watcher, w);
}

const struct call_watcher *call_watcher(void)
{
    return atomic_load_explicit(&watcher, memory_order_acquire);
}

/* What the kernel pushes onto the stack for a handler: registers and floating-point state. */
#define SIGNAL_FRAME_BYTES_MIN 1024u

static struct call *open_at(const struct thread *t, uint32_t i)
{
    return open_listed(t) ? t->opens[i].call : call_newest(t);
}

/* Returns the number of recorded calls among the first `count` open ones. */
static unsigned recorded_before(const struct thread *t, uint32_t count)
{
    unsigned recorded = 0;
    for (uint32_t i = 0; i < count; i++)
        recorded += !open_listed(t) || t->opens[i].is_recorded;
    return recorded;
}

/* Returns the record of an open call, or NULL. */
static uint64_t *record_at(struct thread *t, uint32_t i)
{
    struct open_records o = thread_find_open(t); /* called first: it may find that there are none */
    unsigned before = recorded_before(t, i);
    if (recorded_before(t, i + 1) == before || before >= o.count)
        return NULL;
    return (uint64_t *)(void *)(t->records + t->used + o.at[before]);
}

/* Returns the same record if it is still a call of this function. Otherwise the program has
 * overwritten it, and it is lost. */
uint64_t *open_record(struct thread *t, uint32_t i, const struct call_site *site)
{
    uint64_t *record = record_at(t, i);
    uint64_t head =
        record_word0(RECORD_CALL, 0, RECORD_HEAD_WORDS + site->count, site->code, site->count);
    if (record && (record[0] & ~(uint64_t)0xff00) != head) {
        thread_lose_open(t);
        record = NULL;
    }
    return record;
}

void open_push(struct thread *t, struct call *c, bool is_recorded)
{
    t->open_count = open_listed(t);
    if (call_newest(t) && t->open_count == 0)
        t->opens[t->open_count++] = (struct open_call){call_newest(t), true};
    t->opens[t->open_count++] = (struct open_call){c, is_recorded};
    call_set_newest(t, c, CALL_LISTED);
}

/* Returns the CUPTI-only call with this struct; NULL: it is a hook's call. */
static struct seen_call *seen_of(struct thread *t, const struct call *c)
{
    for (unsigned i = 0; i < LIVE_OPEN_MAX; i++)
        if (c == &t->seen[i].call)
            return &t->seen[i];
    return NULL;
}

/* Removes an open call from the list; later ones move down. */
static void calls_open_take_out(struct thread *t, uint32_t i)
{
    struct seen_call *s = seen_of(t, open_at(t, i));
    uint32_t left = open_count(t) - 1;
    if (s)
        s->is_open = false;
    memmove(&t->opens[i], &t->opens[i + 1], (left - i) * sizeof t->opens[0]);
    call_set_newest(t, left ? t->opens[left - 1].call : NULL, left ? CALL_LISTED : 0);
    /* in the other order a handler could find a count without a list */
    atomic_signal_fence(memory_order_seq_cst);
    t->open_count = left;
}

/* Completes an open call's record, if it has one, and removes the call. If a jump interrupts this,
 * thread_settle can repair it only for the newest call; for the others signals are blocked. */
void open_close(struct thread *t, uint32_t i, uint32_t stack, uint32_t weight)
{
    bool is_newest = i + 1 == open_count(t);
    uint64_t mask = is_newest ? 0 : block_signals();
    if (record_at(t, i)) {
        unsigned before = recorded_before(t, i);
        if (!stack && !weight)
            thread_close(t, before);
        else if (thread_close_with(t, before, stack, weight) && weight)
            pass_take_weight(t);
    }
    calls_open_take_out(t, i);
    if (!is_newest)
        restore_signals(mask);
}

/* Blocks signals: after a handler's jump the call would be closed again and counted twice. */
void open_close_abandoned(struct thread *t, uint32_t i)
{
    uint64_t mask = block_signals();
    uint64_t *record = record_at(t, i);
    if (record) {
        counter_add(COUNTER_STALE, 1);
        record[0] |= (uint64_t)RECORD_STALE << 8;
        record[2] = ticks_now() - record[1];
        record[3] = 0;
    }
    open_close(t, i, 0, 0);
    restore_signals(mask);
}

/* Returns the index of the open call `c`, or open_count if it is not open. */
uint32_t open_find(const struct thread *t, const struct call *c)
{
    uint32_t i = 0;
    while (i < open_count(t) && open_at(t, i) != c)
        i++;
    return i;
}

/*
 * A call that seems interrupted by a signal handler may be one that a handler left by a jump, if
 * its stack was not overwritten since. It was left if not even a handler's frame fits in between.
 * CUDA calls that our own code makes may be that close.
 */
static bool is_too_near(const struct call *where, const struct call *c, uintptr_t caller)
{
    return caller && (uintptr_t)where - (uintptr_t)c < SIGNAL_FRAME_BYTES_MIN &&
           !resolve_is_cuda(caller);
}

bool call_is_inside_quietly(struct thread *t, const struct call *c, uintptr_t caller)
{
    const struct call *where = t->inside ? t->inside : call_newest(t);
    if (!call_thread_is_inside(t))
        return false;
    if (where == CALL_FOR_GOOD || (!is_too_near(where, c, caller) && call_is_live(where, c)))
        return true;
    /* A signal handler left our code by longjmp. */
    if (thread_takes_part(t)) /* otherwise the chunk belongs to another process */
        thread_settle(t);
    call_leave(t);
    return false;
}

bool call_is_inside(struct thread *t, const struct call *c, uintptr_t caller)
{
    if (!call_is_inside_quietly(t, c, caller))
        return false;
    if (t->inside != CALL_FOR_GOOD &&
        (!caller || !resolve_is_cuda(caller))) /* otherwise it is part of a call that was counted */
        counter_add(COUNTER_UNRECORDED, 1);
    return true;
}

/* `inner` may itself be a CUPTI-only call: then the calls below it were checked before. */
static bool is_live(struct thread *t, const struct call *outer, const struct call *inner)
{
    const struct seen_call *s = seen_of(t, outer);
    if (seen_of(t, inner))
        return true;
    if (s && call_watcher() && call_watcher()->is_detached()) /* its end will not be reported */
        return false;
    return s ? call_seen_is_live(s, inner) : call_is_live(outer, inner);
}

/* Returns whether the record is of a call of this function. */
static bool calls_open_is_of(const uint64_t *record, const struct call_site *site)
{
    return record_shape_key(record[0]) ==
           record_shape_key(record_word0(RECORD_CALL, 0, 0, site->code, site->count));
}

/* Completes the open calls that ended on another thread. */
void open_close_moved(struct thread *t)
{
    struct moved_end m;
    for (uint32_t i = open_count(t); i > 0; i--) {
        uint64_t *record = record_at(t, i - 1);
        if (!record || !moved_take(open_at(t, i - 1), record[1], &m) ||
            !calls_open_is_of(record, m.site))
            continue;
        call_complete(record, m.site, m.end, m.result, m.words);
        open_close(t, i - 1, 0, 0);
    }
}

/* Closes the open calls from `first` on that are no longer on the stack. */
void open_close_left(struct thread *t, uint32_t first, const struct call *inner)
{
    for (uint32_t i = open_count(t); i > first; i--)
        if (!is_live(t, open_at(t, i - 1), inner))
            open_close_abandoned(t, i - 1);
}

/* Returns whether `inner` could have been called from the frame of this open call. */
static bool encloses(struct thread *t, uint32_t i, const struct call *inner)
{
    return seen_of(t, open_at(t, i)) ||
           (uintptr_t)open_at(t, i) - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX;
}

/* Returns the newest call that encloses `inner`, or open_count if there is none. */
static uint32_t find_enclosing(struct thread *t, const struct call *inner)
{
    for (uint32_t i = open_count(t); i > 0; i--)
        if (encloses(t, i - 1, inner))
            return i - 1;
    return open_count(t);
}

/* Returns whether a stub made this call: it defines the function, and a call of it is open. */
static bool is_stubs(struct thread *t, uint32_t i, const struct call_site *site, uintptr_t caller)
{
    const uint64_t *record = record_at(t, i);
    return record && calls_open_is_of(record, site) &&
           resolve_defines(api_functions[site->code].symbol, caller);
}

/* Returns whether a call from `caller` (0: only CUPTI saw it) is part of an open call. A CUDA call
 * on a stack without open calls is part of none. */
bool open_has_part(struct thread *t, const struct call *c, const struct call_site *site,
                   uintptr_t caller)
{
    uint32_t i = caller ? find_enclosing(t, c) : open_count(t);
    return i < open_count(t) &&
           (seen_of(t, call_newest(t)) || resolve_is_cuda(caller) || is_stubs(t, i, site, caller));
}

/* Makes room in the full list of open calls: closes the oldest on another stack, which may never
 * return, so that the thread is recorded again. */
bool open_give_up_one(struct thread *t, const struct call *c)
{
    for (uint32_t i = 0; i < open_count(t); i++)
        if (!encloses(t, i, c)) {
            open_close_abandoned(t, i);
            return true;
        }
    return false;
}

bool call_is_part(struct thread *t, const struct call *inner)
{
    uint32_t i = find_enclosing(t, inner);
    return i < open_count(t) && (seen_of(t, open_at(t, i)) || call_is_live(open_at(t, i), inner));
}

uint64_t *call_outer_record(struct thread *t, const struct call *inner)
{
    uint32_t i = find_enclosing(t, inner);
    if (i == open_count(t) && i > 0)
        i--;
    uint64_t *record = i < open_count(t) ? record_at(t, i) : NULL;
    while (record && record[0] >> 8 & RECORD_NESTED && i > 0) {
        uint64_t *below = record_at(t, --i);
        record = below ? below : record;
    }
    return record;
}

/*
 * Returns whether `inner` is inside the newest call that is passed by or left out; removes that
 * call if it is over.
 */
static bool passed_encloses(struct thread *t, const struct call *inner)
{
    const struct call *c = t->passed;
    if (!c || t->open)
        return false;
    if (!is_live(t, c, inner)) {
        t->passed = NULL;
        thread_set_limit(t);
        return false;
    }
    return call_is_seen(t, c) || (uintptr_t)c - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX;
}

/* Returns whether a call from `caller` is part of a call that is passed by or left out, like
 * open_has_part. This does not change if recording resumes or a capture begins inside that call. */
bool open_passed_has_part(struct thread *t, const struct call *c, uintptr_t caller)
{
    return caller && passed_encloses(t, c) &&
           (call_is_seen(t, t->passed) || resolve_is_cuda(caller));
}

bool call_is_passed(struct thread *t, const struct call *inner, bool of_runtime)
{
    return passed_encloses(t, inner) && !(of_runtime && call_is_seen(t, t->passed));
}

struct seen_call *call_newest_seen(struct thread *t)
{
    for (unsigned i = LIVE_OPEN_MAX; i > 0; i--)
        if (t->seen[i - 1].is_open)
            return &t->seen[i - 1];
    return NULL;
}

bool call_seen_is_live(const struct seen_call *s, const void *inner)
{
    return s->is_open && (!s->frame || s->frame - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX ||
                          stack_place_is_handlers(s->frame));
}
