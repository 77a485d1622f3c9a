/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/call.h"

#include "cuda/current_device.h"
#include "hook/moved.h"
#include "hook/pass_by.h"
#include "hook/resolve.h"
#include "hook/silence.h"
#include "record/feature.h"
#include "record/recorded.h"
#include "record/wake.h"
#include "stack/stack.h"

/* During captures, calls that define which streams take part are followed, too. */
static bool call_goes_on(const struct call_site *site)
{
    return call_always_goes_on(site) || (site->capture && attention_captures());
}

static bool is_left_out(const struct call_site *site)
{
    return recorded_off() & OFF_CALLS && !call_goes_on(site);
}

bool call_attach(struct thread *t, uintptr_t caller)
{
    if (thread_takes_part(t))
        return true;
    if (thread_attach(t)) {
        bool may_wait = caller && !resolve_is_cuda(caller);
        FEATURES_DO(first_call, (may_wait));
        return true;
    }
    if (!resolve_is_cuda(caller)) /* otherwise it is part of a call that was counted */
        counter_add(COUNTER_UNRECORDED, 1);
    return false;
}

/* A process that has made no other call has nothing to record: many programs only check whether
 * there is a GPU, and some create a stream to do so. */
static bool begins_nothing(const struct call_site *site)
{
    return site->only_ends && epoch_now() == EPOCH_NONE;
}

/* Decides how to treat a call. Unless it passes through, we are in our own code from here on: calls
 * or forks of a signal handler in between would invalidate the decision. */
static enum call_mode choose_mode(struct thread *t, struct call *c, const struct call_site *site,
                                  uintptr_t caller)
{
    c->mark = call_mark(c, CALL_PASS);
    if (call_is_inside(t, c, caller) || begins_nothing(site))
        return CALL_PASS;
    if (is_left_out(site)) { /* a call inside an open call is part of that one */
        recorded_publish();
        return t->open ? CALL_PASS : CALL_LEFT_OUT;
    }
    if (atomic_load(&fork_page.phase) == START_FAILED) {
        /* Counted even now, since the live file still accepts counters. Calls inside calls are not
         * counted. */
        if (atomic_load(&gp.counters[COUNTER_ENDED]) && !resolve_is_cuda(caller))
            counter_add(COUNTER_UNRECORDED, 1);
        return CALL_PASS;
    }
    call_enter(t, c);
    enum call_mode mode = call_attach(t, caller) ? CALL_OWNER : CALL_PASS;
    if (is_left_out(site)) { /* the recording that has just begun leaves it out */
        call_leave(t);
        return t->open ? CALL_PASS : CALL_LEFT_OUT;
    }
    if (gp.settings.numbers[SETTING_FRONT] == FRONT_CUPTI && !call_newest(t) && caller &&
        call_watcher() && call_watcher()->shows(site->code)) {
        mode = CALL_PASS; /* the watcher makes the event */
        thread_cost_count(t->cost, COST_NESTED);
    }
    if (mode != CALL_PASS) {
        open_close_moved(t);
        open_close_left(t, 0, c);
    }
    if (call_newest(t) && mode != CALL_PASS) {
        mode = !open_has_part(t, c, site, caller) ? CALL_ON_TOP
               : gp.nested                        ? CALL_NESTED
                                                  : CALL_PASS;
        if (mode == CALL_PASS)
            thread_cost_count(t->cost, COST_NESTED);
        if (mode != CALL_PASS && open_listed(t) >= LIVE_OPEN_MAX && !open_give_up_one(t, c)) {
            counter_add(COUNTER_UNRECORDED, 1);
            mode = CALL_PASS;
        }
    }
    if (mode == CALL_PASS)
        call_leave(t);
    return mode;
}

/* Returns whether calls of this function have a fast path. */
static bool has_short_way(const struct thread *t, const struct call_site *site)
{
    return site->class != API_GRAPH && !passing_calls() && thread_usual_limit(t);
}

/* Returns whether it is a call of the burst, and not inside another call. */
static bool take_of_burst(struct thread *t)
{
    if (t->open || !thread_takes_part(t))
        return false;
    t->burst--;
    thread_set_limit(t);
    return true;
}

static uint32_t call_take_stack(struct thread *t)
{
    uint64_t begin = ticks_now();
    uint32_t stack = stack_take(t);
    thread_cost_time(t->cost, COST_STACK, ticks_now() - begin);
    return stack;
}

/*
 * Stacks for calls of any length, and those after a gap, are taken at the begin: otherwise a call
 * that never returns would have none. The stack comes before the call's own record, since it may
 * need the space. Returns the ticks that this took.
 */
static uint64_t begin_with_stack(struct thread *t, struct call *c, const struct call_site *site)
{
    uint64_t begin = ticks_now(), silent = call_newest(t) ? 0 : silence_ticks(t, begin);
    bool is_looked_at = silent && silence_may_look(t, begin);
    t->begun = NULL;
    if (!is_looked_at && !call_is_slow(site, 0))
        return 0;
    if (stacks_are_on()) {
        t->begun_stack = call_take_stack(t);
        t->begun = c;
    }
    if (is_looked_at)
        silence_report(t, begin, silent);
    return ticks_now() - begin;
}

/* The same for the hash of a large copy: the bytes may have changed when the call returns. */
static uint64_t begin_with_content(struct thread *t, struct call *c, const struct call_site *site,
                                   const uint64_t *words)
{
    t->copying = NULL;
    if (!content_is_due(site, words))
        return 0;
    uint64_t begin = ticks_now();
    t->content = content_of(words);
    if (!t->content)
        return 0;
    t->copying = c;
    uint64_t ticks = ticks_now() - begin;
    thread_cost_time(t->cost, COST_CONTENT, ticks);
    return ticks;
}

/* Records the hash of the copied bytes, with the correlation id of the GPU work. It uses the space
 * that holds the call's own record. */
static void note_content(struct thread *t, const uint64_t *record)
{
    const struct record r = {
        RECORD_WITH(CONTENT, [CONTENT_HASH] = t->content,
                    [CONTENT_BYTES] = record[RECORD_HEAD_WORDS + COPY_PIECE_BYTES]),
        .begin = record[1],
        .correlation = (uint32_t)(record[3] >> 32),
    };
    t->copying = NULL;
    thread_append(t, &r);
}

/* Opens the next call of a burst, which began at `begin`, on the fast path. Returns false if it
 * cannot take that path. */
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

/* Returns whether it is part of a hook's call, and not recorded itself, as in choose_mode. */
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
    if (unlikely(t->passed) && open_passed_has_part(t, c, caller)) {
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
        is_timed = false; /* a new name, or a full chunk */
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
        name_first_use(t, words[0]);
    begin += begin_with_stack(t, c, site);
    begin += begin_with_content(t, c, site, words);
    if (!thread_make_room(t, OPEN_BYTES_MAX)) {
        c->mark = call_mark(c, CALL_LOST);
        open_push(t, c, false);
    } else {
        struct open_records o = thread_find_open(t);
        uint64_t *room = (uint64_t *)(void *)(t->records + t->used + o.at[o.count]);
        call_write(room, site, mode == CALL_NESTED ? RECORD_NESTED : 0, words, false);
        if (t->begun == c)
            thread_note_stack(t, room[1], t->begun_stack);
        chunk_commit(t->records, t->used + o.count + 1);
        if (mode == CALL_OWNER) {
            call_set_newest(t, c, 0);
            t->timed = is_timed ? c : NULL;
            t->timed_ticks = room[1] - begin;
        } else {
            open_push(t, c, true);
        }
    }
    call_leave(t);
}

/* Returns the first argument word of this kind, or NULL. */
static const uint64_t *call_word_of(const struct call_site *site, const uint64_t *words,
                                    enum arg_kind kind)
{
    for (unsigned i = 0; i < site->count; i++)
        if (site->kinds[i] == kind)
            return &words[i];
    return NULL;
}

void call_door(bool opens)
{
    FEATURES_DO(door, (opens));
}

void call_resets(const struct call_site *site, const uint64_t *words)
{
    const uint64_t *context = call_word_of(site, words, ARG_HANDLE);
    if (context)
        device_drop((const void *)(uintptr_t)*context);
    FEATURES_DO(context_goes, ());
}

/* Follows stream captures. Returns true if the call's work went into a graph. */
static bool follow_capture(const struct call_site *site, int result, const uint64_t *words)
{
    const uint64_t *stream = call_word_of(site, words, ARG_STREAM);
    const uint64_t *event = call_word_of(site, words, ARG_EVENT);
    bool capturing = attention_captures();
    bool begins_or_ends = api_bounds_capture(site->capture);
    if (!stream || !(capturing || begins_or_ends))
        return false;
    /* A failed EndCapture ends the capture, too, unless it was called on the wrong thread. */
    if (site->capture && (result == 0 || site->capture == API_CAPTURE_END) &&
        result != CAPTURE_ERROR_WRONG_THREAD)
        capture_note((enum api_capture)site->capture, site->code, *stream, event ? *event : 0);
    if (!capturing && recorded_off() & OFF_CALLS) /* more calls are recorded from now on */
        FEATURES_DO(turn, ());
    /*
     * Checked afterwards: the wait that draws a stream into a capture is part of the graph itself.
     */
    return !begins_or_ends && result == 0 && capture_has_stream(site->code, *stream);
}

/* Returns the stack taken when the call began, or takes one now. */
static uint32_t call_stack_of(struct thread *t, const struct call *c)
{
    bool is_begun = t->begun == c;
    t->begun = NULL;
    return is_begun ? t->begun_stack : call_take_stack(t);
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
        thread_settle(t); /* a call inside this one may have left our code open */
        open_close_moved(t);
        i = open_find(t, c);
    }
    if (i == open_count(t) || !thread_takes_part(t)) { /* or it was closed and recorded already */
        moved_put(t, c, site, end, result, words);
        call_leave(t);
        return result;
    }
    /* Calls on top of it were left without an end, unless a coroutine waits inside them. */
    open_close_left(t, i + 1, c);
    uint64_t *record = open_record(t, i, site);
    uint32_t stack = 0, weight = 0;
    uint64_t ticks = 0;
    if (record) {
        call_complete(record, site, end, result, words);
        ticks = record[2];
        if (follow_capture(site, result, record + RECORD_HEAD_WORDS))
            record[0] |= (uint64_t)RECORD_CAPTURED << 8;
        bool has_failed = call_has_failed(site, result);
        bool is_sampled = !has_failed &&
                          (t->sampled == c || call_is_sampled(t, site, record + RECORD_HEAD_WORDS));
        bool has_stack = call_is_slow(site, record[2]) || is_sampled || t->begun == c ||
                         (has_failed && stack_of_failure(site->class));
        t->sampled = NULL;
        if (t->copying == c && content_is_due(site, record + RECORD_HEAD_WORDS) && result == 0 &&
            !(record[0] >> 8 & RECORD_CAPTURED))
            note_content(t, record);
        stack = has_stack ? call_stack_of(t, c) : 0; /* the record may have moved */
        weight = t->weighed == c ? t->weight : 0;
    }
    open_close(t, i, stack, weight);
    silence_called(t, ticks);
    t->ended = calls_are_off() ? 0 : end; /* time without recording is not a gap */
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

/* Ends a call whose begin was timed. */
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
        return result; /* it did not take the usual course */
    uint64_t ticks = t->timed_ticks + (now - end);
    stack_ticks = ticks_of_stacks(t) - stack_ticks; /* stacks have a cost class of their own */
    if (stack_ticks > ticks)
        return result; /* other threads have added to the sum that they share */
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
    if (call_waits(site))
        synced_note();
    if (unlikely(t->timed == c))
        return end_timed(t, c, site, result, words);
    return call_close_slow(c, site, ticks_now(), result, words);
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
    if (s->is_open && mode != CALL_LEFT_OUT) /* its cost is part of the callbacks' time */
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
    uint32_t i = open_find(t, c);
    if (i < open_count(t))
        open_close_abandoned(t, i);
    call_leave(t);
}
