/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include "gpu.h"
#include "pass_by.h"
#include "resolve.h"
#include "stack.h"
#include "writer.h"

/* How many calls thread.opens lists: it is looked at only while `open` is marked. */
static uint32_t listed(const struct thread *t)
{
    return call_unmarked(t->open) == t->open ? 0 : t->open_count;
}

static uint64_t *record_at(const struct thread *t, uint32_t at)
{
    return (uint64_t *)(void *)(t->records + t->used + at);
}

static bool newest_has_record(const struct thread *t)
{
    return !listed(t) || t->opens[listed(t) - 1].is_recorded;
}

uint64_t *call_newest_record(struct thread *t)
{
    struct open_records o = thread_find_open(t);
    return o.count && newest_has_record(t) ? record_at(t, o.at[o.count - 1]) : NULL;
}

uint64_t *call_outer_record(struct thread *t)
{
    struct open_records o = thread_find_open(t);
    unsigned i = o.count;
    if (!i-- || !newest_has_record(t))
        return NULL;
    while (i > 0 && record_at(t, o.at[i])[0] >> 8 & RECORD_NESTED)
        i--;
    return record_at(t, o.at[i]);
}

/* The same, if it still is a call of this site: else the program wrote over it, and it is lost. */
static uint64_t *newest_record_of(struct thread *t, const struct call_site *site)
{
    uint64_t *record = call_newest_record(t);
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
    if (t->open && t->open_count == 0)
        t->opens[t->open_count++] = (struct open_call){t->open, true};
    t->opens[t->open_count++] = (struct open_call){c, is_recorded};
    t->open = call_marked(c);
}

/* The call that only CUPTI saw which has this struct; NULL if it is a hook's. */
static struct seen_call *seen_of(struct thread *t, const struct call *c)
{
    for (unsigned i = 0; i < LIVE_OPEN_MAX; i++)
        if (c == &t->seen[i].call)
            return &t->seen[i];
    return NULL;
}

/* The newest open call is over; the one below it is the newest again. */
static void pop(struct thread *t)
{
    struct seen_call *s = seen_of(t, call_unmarked(t->open));
    if (s)
        s->is_open = false;
    t->open_count = listed(t) ? listed(t) - 1 : 0;
    t->open = t->open_count ? call_marked(t->opens[t->open_count - 1].call) : NULL;
}

/* Records the newest open call as stale and forgets it. */
static void close_stale(struct thread *t)
{
    uint64_t *record = call_newest_record(t);
    if (record) {
        counter_add(COUNTER_STALE, 1);
        record[0] |= (uint64_t)RECORD_STALE << 8;
        record[2] = ticks_now() - record[1];
        record[3] = 0;
        thread_close(t);
    }
    pop(t);
}

/* `c` is not the newest open call. True if it waits below, and is the newest now. */
static bool find_below(struct thread *t, struct call *c)
{
    uint32_t i = 0;
    while (i < listed(t) && t->opens[i].call != c)
        i++;
    if (i == listed(t))
        return false;
    while (call_unmarked(t->open) != c) /* those on top of it were left by another door */
        close_stale(t);
    return true;
}

bool call_is_inside(struct thread *t, const struct call *c)
{
    if (!t->inside)
        return false;
    if (t->inside == CALL_FOR_GOOD)
        return true;
    if (call_is_live(t->inside, c)) {
        counter_add(COUNTER_UNRECORDED, 1);
        return true;
    }
    /* A signal handler left our code by longjmp. */
    if (thread_takes_part(t)) /* else the chunk is another process's */
        thread_settle(t);
    t->inside = NULL;
    return false;
}

/* `inner` may be a seen call itself: then what was open below it was looked at before. */
static bool is_live(struct thread *t, const struct call *outer, const struct call *inner)
{
    const struct seen_call *s = seen_of(t, outer);
    if (seen_of(t, inner))
        return true;
    if (s && gpu_deafness() == GPU_DEAF) /* its end will never be told */
        return false;
    return s ? call_seen_is_live(s, inner) : call_is_live(outer, inner);
}

/* Is what `caller` calls part of the newest open call? 0: a call that only CUPTI saw. */
static bool is_part(struct thread *t, uintptr_t caller)
{
    return caller && (seen_of(t, call_unmarked(t->open)) || resolve_is_cuda(caller));
}

/* What is to become of a call. */
static enum call_mode choose_mode(struct thread *t, struct call *c, const struct call_site *site,
                                  uintptr_t caller)
{
    c->mark = call_mark(c, CALL_PASS);
    if (call_is_inside(t, c) || atomic_load_explicit(&gp.paused, memory_order_relaxed))
        return CALL_PASS;
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
            gpu_recording_runs(caller && !resolve_is_cuda(caller));
        } else {
            if (!resolve_is_cuda(caller)) /* else it is part of a call that was counted */
                counter_add(COUNTER_UNRECORDED, 1);
            mode = CALL_PASS;
        }
    }
    if (gp.settings.numbers[SETTING_FRONT] == FRONT_CUPTI && !t->open && caller &&
        gpu_is_active() && gpu_deafness() == GPU_HEARS && gpu.is_called_back[site->code]) {
        mode = CALL_PASS; /* its callback makes the event */
        thread_cost_count(t->cost, COST_NESTED);
    }
    while (mode != CALL_PASS && t->open && !is_live(t, call_unmarked(t->open), c))
        close_stale(t);
    if (t->open && mode != CALL_PASS) {
        mode = !is_part(t, caller) ? CALL_ON_TOP : gp.nested ? CALL_NESTED : CALL_PASS;
        if (mode == CALL_PASS)
            thread_cost_count(t->cost, COST_NESTED);
        if (mode != CALL_PASS && listed(t) >= LIVE_OPEN_MAX) {
            counter_add(COUNTER_UNRECORDED, 1);
            mode = CALL_PASS;
        }
    }
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
    if (t->inside || t->open || !thread_takes_part(t))
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
    const struct call *open = call_unmarked(t->open);
    if (!open || t->inside || gp.nested || !thread_takes_part(t) || !caller ||
        (uintptr_t)open - (uintptr_t)t->seen < sizeof t->seen || !call_is_live(open, c) ||
        !resolve_is_cuda(caller))
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
    if (mode == CALL_PASS) {
        if (begin && (t->open || gp.settings.numbers[SETTING_FRONT] == FRONT_CUPTI))
            thread_cost_time(t->cost, COST_NESTED, ticks_now() - begin);
        return;
    }
    call_enter(t, c);
    if (site->count && site->kinds[0] == API_KERNEL && !name_is_known(words[0]))
        name_first_sight(t, words[0]);
    if (!thread_make_room(t, OPEN_BYTES_MAX)) {
        c->mark = call_mark(c, CALL_LOST);
        push(t, c, false);
    } else {
        struct open_records o = thread_find_open(t);
        uint64_t *room = record_at(t, o.at[o.count]);
        call_write(room, site, mode == CALL_NESTED ? RECORD_NESTED : 0, words, false);
        chunk_commit(t->records, t->used + o.count + 1);
        if (mode == CALL_OWNER) {
            t->open = c;
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
                               enum api_arg_kind kind)
{
    for (unsigned i = 0; i < site->count; i++)
        if (site->kinds[i] == kind)
            return &words[i];
    return NULL;
}

/* Follows stream captures. True: the call's work was recorded into a graph. */
static bool follow_capture(const struct call_site *site, int result, const uint64_t *words)
{
    const uint64_t *stream = word_of(site, words, API_STREAM);
    const uint64_t *event = word_of(site, words, API_EVENT);
    enum capture_role role = capture_role(api_functions[site->code].symbol);
    bool capturing = attention_captures();
    bool begins_or_ends = role == CAPTURE_BEGIN || role == CAPTURE_FINISH;
    if (!stream || !(capturing || begins_or_ends))
        return false;
    /* A failed EndCapture ends the capture as well, but for the one that came on a wrong thread. */
    if (role != CAPTURE_NONE && (result == 0 || role == CAPTURE_FINISH) &&
        result != CAPTURE_ERROR_WRONG_THREAD)
        capture_note(role, site->code, *stream, event ? *event : 0);
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
    if (!thread_takes_part(t)) {
        call_leave(t); /* recording has ended, or this is a fork's child */
        return result;
    }
    thread_settle(t); /* a call inside this one may have been left in our own code */
    if (call_unmarked(t->open) != c && !find_below(t, c)) {
        call_leave(t); /* found stale by a call on another stack, and recorded then */
        return result;
    }
    uint64_t *record = newest_record_of(t, site);
    if (record) {
        call_complete(record, site, end, result, words);
        if (follow_capture(site, result, record + RECORD_HEAD_WORDS))
            record[0] |= (uint64_t)RECORD_CAPTURED << 8;
        bool has_stack = call_is_slow(site, record[2]) ||
                         (call_has_failed(result) && stack_of_failure(site->class));
        uint32_t stack = has_stack ? take_stack(t) : 0;
        uint32_t weight = t->weighed == c ? t->weight : 0;
        /* Taking it may have taken the room that the record was in. */
        if (call_newest_record(t) && !stack && !weight)
            thread_close(t);
        else if (call_newest_record(t) && thread_close_with(t, stack, weight) && weight)
            pass_take_weight(t);
    }
    pop(t);
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
        thread_cost_time(t->cost, cost_classes[site->code], ticks);
    else
        thread_cost_time_cold(t->cost, cost_classes[site->code], ticks);
    return result;
}

int call_end(struct call *c, const struct call_site *site, int result, const uint64_t *words)
{
    struct thread *t = &this_thread;
    if (call_mode(c) == CALL_PASS)
        return result;
    if (call_mode(c) == CALL_PASSED) {
        pass_end(t, c, result);
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
    return s->is_open && (!s->frame || s->frame - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX);
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
    s->is_open = call_mode(&s->call) != CALL_PASS;
    if (s->is_open) /* what it costs is in the callbacks' time */
        thread_cost_raise(t->cost, &t->cost->count[cost_classes[site->code]], (uint64_t)-1);
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
    call_enter(t, c);
    if (call_unmarked(t->open) == c || find_below(t, c))
        close_stale(t);
    call_leave(t);
    s->is_open = false;
}
