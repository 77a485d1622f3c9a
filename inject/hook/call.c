/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/call.h"

#include "base/signals.h"
#include "hook/moved.h"
#include "hook/pass_by.h"
#include "hook/resolve.h"
#include "record/feature.h"
#include "record/stack_place.h"
#include "record/wake.h"
#include "stack/stack.h"

static _Atomic(const struct call_watcher *) watcher; /* once, by call_watch; NULL: nobody */

void call_watch(const struct call_watcher *w)
{
    atomic_store(&watcher, w);
}

static const struct call_watcher *watched_by(void)
{
    return atomic_load_explicit(&watcher, memory_order_acquire);
}

/* What the kernel puts onto the stack for a handler: the registers, the floating-point ones too. */
#define SIGNAL_FRAME_BYTES_MIN 1024u

/* How many calls thread.opens lists: it is looked at only if it says so. */
static uint32_t listed(const struct thread *t)
{
    return call_has(t, CALL_LISTED) ? t->open_count : 0;
}

static uint32_t open_count(const struct thread *t)
{
    return call_newest(t) && !listed(t) ? 1 : listed(t);
}

static struct call *open_at(const struct thread *t, uint32_t i)
{
    return listed(t) ? t->opens[i].call : call_newest(t);
}

/* How many of the first `count` open calls have a record. */
static unsigned recorded_before(const struct thread *t, uint32_t count)
{
    unsigned recorded = 0;
    for (uint32_t i = 0; i < count; i++)
        recorded += !listed(t) || t->opens[i].is_recorded;
    return recorded;
}

/* The record of an open call, or NULL. */
static uint64_t *record_at(struct thread *t, uint32_t i)
{
    struct open_records o = thread_find_open(t); /* first: it may find that there are none */
    unsigned before = recorded_before(t, i);
    if (recorded_before(t, i + 1) == before || before >= o.count)
        return NULL;
    return (uint64_t *)(void *)(t->records + t->used + o.at[before]);
}

/* The same, if it still is a call of this site: else the program wrote over it, and it is lost. */
static uint64_t *record_of(struct thread *t, uint32_t i, const struct call_site *site)
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

/* The newest open call comes on top of those that are open already. */
static void push(struct thread *t, struct call *c, bool is_recorded)
{
    t->open_count = listed(t);
    if (call_newest(t) && t->open_count == 0)
        t->opens[t->open_count++] = (struct open_call){call_newest(t), true};
    t->opens[t->open_count++] = (struct open_call){c, is_recorded};
    call_set_newest(t, c, CALL_LISTED);
}

/* The call that only CUPTI saw which has this struct; NULL if it is a hook's. */
static struct seen_call *seen_of(struct thread *t, const struct call *c)
{
    for (unsigned i = 0; i < LIVE_OPEN_MAX; i++)
        if (c == &t->seen[i].call)
            return &t->seen[i];
    return NULL;
}

/* An open call is over; those that were on top of it move down. */
static void take_out(struct thread *t, uint32_t i)
{
    struct seen_call *s = seen_of(t, open_at(t, i));
    uint32_t left = open_count(t) - 1;
    if (s)
        s->is_open = false;
    memmove(&t->opens[i], &t->opens[i + 1], (left - i) * sizeof t->opens[0]);
    call_set_newest(t, left ? t->opens[left - 1].call : NULL, left ? CALL_LISTED : 0);
    atomic_signal_fence(memory_order_seq_cst); /* the other order would leave one without a list */
    t->open_count = left;
}

/*
 * An open call's record becomes whole, if it has one, and the call is forgotten. What a jump leaves
 * of that is told (thread_settle) only if it is the newest; signals are kept out of the others.
 */
static void close_at(struct thread *t, uint32_t i, uint32_t stack, uint32_t weight)
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
    take_out(t, i);
    if (!is_newest)
        restore_signals(mask);
}

/* Records an open call as stale and forgets it. */
static void close_stale(struct thread *t, uint32_t i)
{
    uint64_t *record = record_at(t, i);
    if (record) {
        counter_add(COUNTER_STALE, 1);
        record[0] |= (uint64_t)RECORD_STALE << 8;
        record[2] = ticks_now() - record[1];
        record[3] = 0;
    }
    close_at(t, i, 0, 0);
}

/* Where the open call `c` is listed; open_count if it is not open any more. */
static uint32_t find_open(const struct thread *t, const struct call *c)
{
    uint32_t i = 0;
    while (i < open_count(t) && open_at(t, i) != c)
        i++;
    return i;
}

/*
 * What looks like a call that a signal handler interrupted may be one that it left, whose stack was
 * not written to since. Where not even a handler's frame fits in between, it was left. What our own
 * code lets CUDA call may be that near.
 */
static bool is_too_near(const struct call *where, const struct call *c, uintptr_t caller)
{
    return caller && (uintptr_t)where - (uintptr_t)c < SIGNAL_FRAME_BYTES_MIN &&
           !resolve_is_cuda(caller);
}

bool call_is_inside(struct thread *t, const struct call *c, uintptr_t caller)
{
    const struct call *where = t->inside ? t->inside : call_newest(t);
    if (!call_thread_is_inside(t))
        return false;
    if (where == CALL_FOR_GOOD)
        return true;
    if (!is_too_near(where, c, caller) && call_is_live(where, c)) {
        if (!caller || !resolve_is_cuda(caller)) /* else it is part of a call that was counted */
            counter_add(COUNTER_UNRECORDED, 1);
        return true;
    }
    /* A signal handler left our code by longjmp. */
    if (thread_takes_part(t)) /* else the chunk is another process's */
        thread_settle(t);
    call_leave(t);
    return false;
}

/* `inner` may be a seen call itself: then what was open below it was looked at before. */
static bool is_live(struct thread *t, const struct call *outer, const struct call *inner)
{
    const struct seen_call *s = seen_of(t, outer);
    if (seen_of(t, inner))
        return true;
    if (s && watched_by() && watched_by()->is_deaf()) /* its end will never be told */
        return false;
    return s ? call_seen_is_live(s, inner) : call_is_live(outer, inner);
}

/* Is it a call of this site? */
static bool is_of(const uint64_t *record, const struct call_site *site)
{
    return record_shape_key(record[0]) ==
           record_shape_key(record_word0(RECORD_CALL, 0, 0, site->code, site->count));
}

/* Records those open calls that ended on another thread. */
static void close_moved(struct thread *t)
{
    struct moved_end m;
    for (uint32_t i = open_count(t); i > 0; i--) {
        uint64_t *record = record_at(t, i - 1);
        if (!record || !moved_take(open_at(t, i - 1), record[1], &m) || !is_of(record, m.site))
            continue;
        call_complete(record, m.site, m.end, m.result, m.words);
        close_at(t, i - 1, 0, 0);
    }
}

/* Those open calls from `first` on are over that are not on the stack any more. */
static void close_left(struct thread *t, uint32_t first, const struct call *inner)
{
    for (uint32_t i = open_count(t); i > first; i--)
        if (!is_live(t, open_at(t, i - 1), inner))
            close_stale(t, i - 1);
}

/* Is the frame of an open call one that `inner` may have been called from? */
static bool encloses(struct thread *t, uint32_t i, const struct call *inner)
{
    return seen_of(t, open_at(t, i)) ||
           (uintptr_t)open_at(t, i) - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX;
}

/* The newest call that encloses `inner`; open_count if there is none. */
static uint32_t find_enclosing(struct thread *t, const struct call *inner)
{
    for (uint32_t i = open_count(t); i > 0; i--)
        if (encloses(t, i - 1, inner))
            return i - 1;
    return open_count(t);
}

/* A stub that another stub leads to, and not CUDA: the same function is open, and it has its own.
 */
static bool is_stubs(struct thread *t, uint32_t i, const struct call_site *site, uintptr_t caller)
{
    const uint64_t *record = record_at(t, i);
    return record && is_of(record, site) &&
           resolve_defines(api_functions[site->code].symbol, caller);
}

/*
 * Is what `caller` calls part of an open call? 0: a call that only CUPTI saw. What CUDA calls on
 * another stack than that of any open one is part of none of them.
 */
static bool is_part(struct thread *t, const struct call *c, const struct call_site *site,
                    uintptr_t caller)
{
    uint32_t i = caller ? find_enclosing(t, c) : open_count(t);
    return i < open_count(t) &&
           (seen_of(t, call_newest(t)) || resolve_is_cuda(caller) || is_stubs(t, i, site, caller));
}

/*
 * As many calls are open as can be. Those of other stacks may never come back: the oldest of them
 * is given up, so that a thread is not silenced for good.
 */
static bool give_up_one(struct thread *t, const struct call *c)
{
    for (uint32_t i = 0; i < open_count(t); i++)
        if (!encloses(t, i, c)) {
            close_stale(t, i);
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

/* Does `inner` lie inside the newest call that is passed by or left out? If that is over, it is
 * forgotten. */
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

/* Is what `caller` calls part of a call that is passed by or left out? As is_part; it stays so if
 * calls go on, or a capture begins, in the middle of that. */
static bool is_part_of_passed(struct thread *t, const struct call *c, uintptr_t caller)
{
    return caller && passed_encloses(t, c) &&
           (call_is_seen(t, t->passed) || resolve_is_cuda(caller));
}

bool call_is_passed(struct thread *t, const struct call *inner, bool of_runtime)
{
    return passed_encloses(t, inner) && !(of_runtime && call_is_seen(t, t->passed));
}

/* While calls are off, what later ones are understood by goes on: who has which memory, and which
 * streams capture. */
static bool goes_on(const struct call_site *site)
{
    return site->class == API_ALLOC || api_bounds_capture(site->capture) ||
           (site->capture && attention_captures());
}

/*
 * What is to become of a call. Unless it is to pass, we are inside our own code from here on: what
 * a signal handler opened in between, or forked, would not be as it was found here.
 */
static enum call_mode choose_mode(struct thread *t, struct call *c, const struct call_site *site,
                                  uintptr_t caller)
{
    c->mark = call_mark(c, CALL_PASS);
    if (call_is_inside(t, c, caller))
        return CALL_PASS;
    if (recorded_off() & OFF_CALLS &&
        !goes_on(site)) /* what is inside an open call is part of that */
        return t->open ? CALL_PASS : CALL_LEFT_OUT;
    if (atomic_load(&fork_page.phase) == START_FAILED) {
        /* Counted even now: the live file still takes the counter. Calls inside calls are not. */
        if (atomic_load(&gp.counters[COUNTER_ENDED]) && !resolve_is_cuda(caller))
            counter_add(COUNTER_UNRECORDED, 1);
        return CALL_PASS;
    }
    call_enter(t, c);
    enum call_mode mode = CALL_OWNER;
    if (!thread_takes_part(t)) {
        if (thread_attach(t)) {
            bool may_wait = caller && !resolve_is_cuda(caller);
            FEATURES_DO(first_call, (may_wait));
        } else {
            if (!resolve_is_cuda(caller)) /* else it is part of a call that was counted */
                counter_add(COUNTER_UNRECORDED, 1);
            mode = CALL_PASS;
        }
    }
    if (gp.settings.numbers[SETTING_FRONT] == FRONT_CUPTI && !call_newest(t) && caller &&
        watched_by() && watched_by()->shows(site->code)) {
        mode = CALL_PASS; /* its watcher makes the event */
        thread_cost_count(t->cost, COST_NESTED);
    }
    if (mode != CALL_PASS) {
        close_moved(t);
        close_left(t, 0, c);
    }
    if (call_newest(t) && mode != CALL_PASS) {
        mode = !is_part(t, c, site, caller) ? CALL_ON_TOP : gp.nested ? CALL_NESTED : CALL_PASS;
        if (mode == CALL_PASS)
            thread_cost_count(t->cost, COST_NESTED);
        if (mode != CALL_PASS && listed(t) >= LIVE_OPEN_MAX && !give_up_one(t, c)) {
            counter_add(COUNTER_UNRECORDED, 1);
            mode = CALL_PASS;
        }
    }
    if (mode == CALL_PASS)
        call_leave(t);
    return mode;
}

/* Has a call of this site a short way, when it is the usual one? */
static bool has_short_way(const struct thread *t, const struct call_site *site)
{
    return site->class != API_GRAPH && !passing_calls() && thread_usual_limit(t);
}

/* Is it one of the burst's calls, and not one inside another? */
static bool take_of_burst(struct thread *t)
{
    if (t->open || !thread_takes_part(t))
        return false;
    t->burst--;
    thread_set_limit(t);
    return true;
}

/* The next call of a burst, which began at `begin`: as on the short way. False: it is no usual one.
 */
static bool open_timed(struct thread *t, struct call *c, const struct call_site *site,
                       const uint64_t *words, uint64_t begin)
{
    t->limit = thread_usual_limit(t);
    bool opened = call_open(c, site, words);
    thread_set_limit(t);
    if (opened) {
        t->timed = c;
        t->timed_ticks = ((const uint64_t *)(void *)(t->records + t->used))[1] - begin;
    }
    return opened;
}

/* As choose_mode would find it: part of a hook's call, and not recorded by itself. */
static bool is_inner(struct thread *t, const struct call *c, uintptr_t caller)
{
    const struct call *open = call_newest(t);
    if (!open || call_thread_is_inside(t) || gp.nested || !thread_takes_part(t) || !caller ||
        call_is_seen(t, open) || (uintptr_t)open - (uintptr_t)c - 1 >= CALL_NEAR_BYTES ||
        !resolve_is_cuda(caller) || !call_is_live(open, c))
        return false;
    thread_cost_count(t->cost, COST_NESTED);
    return true;
}

bool call_is_inner(const struct call *c, uintptr_t caller)
{
    struct thread *t = &this_thread;
    return !t->burst && is_inner(t, c, caller);
}

void call_begin(struct call *c, const struct call_site *site, const uint64_t *words,
                uintptr_t caller)
{
    struct thread *t = &this_thread;
    uint64_t begin = unlikely(t->burst) ? ticks_now() : 0;
    if (begin && is_inner(t, c, caller)) {
        c->mark = call_mark(c, CALL_PASS);
        thread_cost_time(t->cost, COST_NESTED, ticks_now() - begin);
        return;
    }
    if (unlikely(t->passed) && is_part_of_passed(t, c, caller)) {
        c->mark = call_mark(c, CALL_PASS);
        thread_cost_count(t->cost, COST_NESTED);
        return;
    }
    if (unlikely(passing_now()) && pass_by(t, c, site, caller, begin))
        return;
    bool is_timed = begin && take_of_burst(t) && caller;
    if (is_timed && has_short_way(t, site)) {
        if (open_timed(t, c, site, words, begin))
            return;
        is_timed = false; /* a name's first sight, or a full chunk */
    }
    enum call_mode mode = choose_mode(t, c, site, caller);
    c->mark = call_mark(c, mode);
    if (mode == CALL_LEFT_OUT) {
        pass_enter(t, c, mode);
        return;
    }
    if (mode == CALL_PASS) {
        if (begin && (t->open || gp.settings.numbers[SETTING_FRONT] == FRONT_CUPTI))
            thread_cost_time(t->cost, COST_NESTED, ticks_now() - begin);
        return;
    }
    if (site->count && site->kinds[0] == ARG_KERNEL && !name_is_known(words[0]))
        name_first_sight(t, words[0]);
    if (!thread_make_room(t, OPEN_BYTES_MAX)) {
        c->mark = call_mark(c, CALL_LOST);
        push(t, c, false);
    } else {
        struct open_records o = thread_find_open(t);
        uint64_t *room = (uint64_t *)(void *)(t->records + t->used + o.at[o.count]);
        call_write(room, site, mode == CALL_NESTED ? RECORD_NESTED : 0, words, false);
        chunk_commit(t->records, t->used + o.count + 1);
        if (mode == CALL_OWNER) {
            call_set_newest(t, c, 0);
            t->timed = is_timed ? c : NULL;
            t->timed_ticks = room[1] - begin;
        } else {
            push(t, c, true);
        }
    }
    call_leave(t);
}

/* The first argument word of this kind, or NULL. */
static const uint64_t *word_of(const struct call_site *site, const uint64_t *words,
                               enum arg_kind kind)
{
    for (unsigned i = 0; i < site->count; i++)
        if (site->kinds[i] == kind)
            return &words[i];
    return NULL;
}

/* Follows stream captures. True: the call's work was recorded into a graph. */
static bool follow_capture(const struct call_site *site, int result, const uint64_t *words)
{
    const uint64_t *stream = word_of(site, words, ARG_STREAM);
    const uint64_t *event = word_of(site, words, ARG_EVENT);
    bool capturing = attention_captures();
    bool begins_or_ends = api_bounds_capture(site->capture);
    if (!stream || !(capturing || begins_or_ends))
        return false;
    /* A failed EndCapture ends the capture as well, but for the one that came on a wrong thread. */
    if (site->capture && (result == 0 || site->capture == API_CAPTURE_END) &&
        result != CAPTURE_ERROR_WRONG_THREAD)
        capture_note((enum api_capture)site->capture, site->code, *stream, event ? *event : 0);
    /* After that: the wait that draws a stream into a capture goes into the graph itself. */
    return !begins_or_ends && result == 0 && capture_has_stream(site->code, *stream);
}

static uint32_t take_stack(struct thread *t)
{
    uint64_t begin = ticks_now();
    uint32_t stack = stack_take(t);
    thread_cost_time(t->cost, COST_STACK, ticks_now() - begin);
    return stack;
}

int call_close_slow(struct call *c, const struct call_site *site, uint64_t end, int result,
                    const uint64_t *words)
{
    struct thread *t = &this_thread;
    if (call_mode(c) == CALL_PASS)
        return result;
    call_enter(t, c);
    uint32_t i = 0;
    if (thread_takes_part(t)) {
        thread_settle(t); /* a call inside this one may have been left in our own code */
        close_moved(t);
        i = find_open(t, c);
    }
    if (i == open_count(t) || !thread_takes_part(t)) { /* or it was given up, and recorded then */
        moved_put(t, c, site, end, result, words);
        call_leave(t);
        return result;
    }
    /* Those on top of it were left by another door, unless a coroutine waits inside them. */
    close_left(t, i + 1, c);
    uint64_t *record = record_of(t, i, site);
    uint32_t stack = 0, weight = 0;
    if (record) {
        call_complete(record, site, end, result, words);
        if (follow_capture(site, result, record + RECORD_HEAD_WORDS))
            record[0] |= (uint64_t)RECORD_CAPTURED << 8;
        bool has_stack = call_is_slow(site, record[2]) ||
                         (call_has_failed(site, result) && stack_of_failure(site->class));
        stack = has_stack ? take_stack(t) : 0; /* which may take the room that the record is in */
        weight = t->weighed == c ? t->weight : 0;
    }
    close_at(t, i, stack, weight);
    if (thread_is_asked(t))
        thread_follow(t);
    if (attention_now() >= ATTENTION_LATE)
        writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
    call_leave(t);
    return result;
}

static uint64_t ticks_of_stacks(const struct thread *t)
{
    return atomic_load_explicit(&t->cost->ticks[COST_STACK], memory_order_relaxed);
}

/* The end of a call whose begin was timed. */
static int end_timed(struct thread *t, struct call *c, const struct call_site *site, int result,
                     const uint64_t *words)
{
    const uint8_t *records = t->records;
    uint64_t used = t->used;
    uint64_t stack_ticks = ticks_of_stacks(t);
    uint64_t end = ticks_now();
    t->timed = NULL;
    if (has_short_way(t, site))
        call_close_at(c, site, end, result, words);
    else
        call_close_slow(c, site, end, result, words);
    uint64_t now = ticks_now();
    if (t->records != records || t->used <= used || !thread_takes_part(t))
        return result; /* it is no usual one */
    uint64_t ticks = t->timed_ticks + (now - end);
    stack_ticks = ticks_of_stacks(t) - stack_ticks; /* they have a row of their own */
    if (stack_ticks > ticks)
        return result; /* others have taken some, too, on the sum that threads share */
    ticks -= stack_ticks;
    if (t->burst < THREAD_COST_BURST - THREAD_COST_COLD)
        thread_cost_time(t->cost, site->cost, ticks);
    else
        thread_cost_time_cold(t->cost, site->cost, ticks);
    return result;
}

int call_end(struct call *c, const struct call_site *site, int result, const uint64_t *words)
{
    struct thread *t = &this_thread;
    if (call_mode(c) == CALL_PASS)
        return result;
    if (call_mode(c) == CALL_PASSED) {
        pass_end(t, c, site, result);
        return result;
    }
    if (call_mode(c) == CALL_LEFT_OUT) {
        pass_leave(t, c);
        return result;
    }
    if (unlikely(t->timed == c))
        return end_timed(t, c, site, result, words);
    return call_close_slow(c, site, ticks_now(), result, words);
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

struct seen_call *call_begin_seen(struct thread *t, const struct call_site *site,
                                  const uint64_t *words)
{
    struct seen_call *newest = call_newest_seen(t), *s = newest ? newest + 1 : t->seen;
    if (s == t->seen + LIVE_OPEN_MAX) {
        counter_add(COUNTER_UNRECORDED, 1);
        return NULL;
    }
    call_begin(&s->call, site, words, 0);
    enum call_mode mode = call_mode(&s->call);
    s->is_open = mode != CALL_PASS;
    if (s->is_open && mode != CALL_LEFT_OUT) /* what it costs is in the callbacks' time */
        thread_cost_raise(t->cost, &t->cost->count[site->cost], (uint64_t)-1);
    return s->is_open ? s : NULL;
}

void call_end_seen(struct seen_call *s, const struct call_site *site, int result,
                   const uint64_t *words)
{
    call_end(&s->call, site, result, words);
    s->is_open = false;
}

void call_abandon_seen(struct thread *t, struct seen_call *s)
{
    struct call *c = &s->call;
    s->is_open = false;
    if (call_mode(c) == CALL_LEFT_OUT) {
        pass_leave(t, c);
        return;
    }
    call_enter(t, c);
    uint32_t i = find_open(t, c);
    if (i < open_count(t))
        close_stale(t, i);
    call_leave(t);
}
