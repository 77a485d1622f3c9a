/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>

#include "pool.h"
#include "resolve.h"
#include "writer.h"

static uint64_t *open_words(struct thread *t)
{
    return (uint64_t *)(void *)(t->chunk + LIVE_CHUNK_OPEN);
}

/* The newest call has ended: the one below it is the newest again. */
static void uncover(struct thread *t)
{
    const struct open_call *newest = &t->below[--t->below_count];
    t->open = newest->call;
    if (!thread_has_chunk(t))
        return;
    memcpy(open_words(t) + 1, newest->words + 1, sizeof newest->words - sizeof newest->words[0]);
    chunk_set_u64(t->chunk, LIVE_CHUNK_OPEN, newest->words[0]);
}

/* The open call waits below one that comes on top of it. False: too many wait already. */
static bool cover(struct thread *t)
{
    if (t->below_count == OPEN_CALLS_MAX - 1)
        return false;
    struct open_call *below = &t->below[t->below_count++];
    *below = (struct open_call){.call = t->open};
    if (thread_has_chunk(t)) {
        memcpy(below->words, open_words(t), sizeof below->words);
        chunk_set_u64(t->chunk, LIVE_CHUNK_OPEN, 0);
    }
    t->open = NULL;
    return true;
}

/* Records the open call as stale and forgets it. */
static void close_stale(struct thread *t)
{
    const uint64_t *open = open_words(t);
    uint64_t head = thread_has_chunk(t) ? open[0] : 0;
    unsigned count = (unsigned)(head >> 16) & 0xffff;
    counter_add(COUNTER_STALE, 1);
    if (head) {
        struct record r = {.type = RECORD_CALL,
                           .flags = RECORD_STALE,
                           .code = (uint16_t)head,
                           .begin = open[1],
                           .duration = ticks_now() - open[1],
                           .arg_count = (uint8_t)(count < LIVE_OPEN_ARGS ? count : LIVE_OPEN_ARGS)};
        memcpy(r.args, open + 2, 8 * (size_t)r.arg_count);
        chunk_set_u64(t->chunk, LIVE_CHUNK_OPEN, 0);
        thread_append(t, &r);
    } else {
        counter_add(COUNTER_DROPPED, 1); /* the thread had no chunk when the call began */
    }
    t->open = NULL;
    if (t->below_count)
        uncover(t);
}

/* `c` is not the newest open call. True if it waits below, and is the newest now. */
static bool find_below(struct thread *t, struct call *c)
{
    uint32_t i = 0;
    while (i < t->below_count && t->below[i].call != c)
        i++;
    if (i == t->below_count)
        return false;
    call_enter(t, c);
    while (t->open != c) /* those on top of it were left by another door */
        close_stale(t);
    t->inside = NULL;
    return true;
}

/* True: not to be recorded, because we are inside our own code on this thread. */
static bool is_inside(struct thread *t, const struct call *c)
{
    if (!t->inside)
        return false;
    if (t->inside == CALL_FOR_GOOD)
        return true;
    if (call_is_live(t->inside, c)) {
        counter_add(COUNTER_UNRECORDED, 1);
        return true;
    }
    t->inside = NULL; /* a signal handler left our code by longjmp */
    return false;
}

enum call_mode call_begin_slow(struct thread *t, struct call *c, uintptr_t caller)
{
    if (is_inside(t, c))
        return CALL_PASS;
    if (atomic_load(&gp.page->phase) == START_FAILED) {
        /* Counted even now: the live file still takes the counter. Calls inside calls are not. */
        if (atomic_load(&gp.counters[COUNTER_ENDED]) && !resolve_is_cuda(caller))
            counter_add(COUNTER_UNRECORDED, 1);
        return CALL_PASS;
    }
    if (t->epoch != atomic_load(&gp.page->epoch)) {
        c->canary = call_canary(c);
        call_enter(t, c);
        bool attached = thread_attach(t);
        t->inside = NULL;
        if (!attached) {
            if (!resolve_is_cuda(caller)) /* else it is part of a call that was counted */
                counter_add(COUNTER_UNRECORDED, 1);
            return CALL_PASS;
        }
    }
    if (t->open && !call_is_live(t->open, c)) {
        c->canary = call_canary(c);
        call_enter(t, c);
        while (t->open && !call_is_live(t->open, c))
            close_stale(t);
        t->inside = NULL;
    }
    if (!t->open)
        return CALL_OWNER;
    if (resolve_is_cuda(caller))
        return gp.nested ? CALL_NESTED : CALL_PASS;
    if (cover(t))
        return CALL_OWNER;
    counter_add(COUNTER_UNRECORDED, 1);
    return CALL_PASS;
}

void call_name_kernel(struct thread *t, struct call *c, uint64_t handle)
{
    call_enter(t, c);
    name_first_sight(t, handle);
    t->inside = NULL;
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
    bool capturing = atomic_load(&gp.attention) % ATTENTION_LATE != 0;
    bool begins_or_ends = site->role == CAPTURE_BEGIN || site->role == CAPTURE_FINISH;
    if (!stream || !(capturing || begins_or_ends))
        return false;
    /* A failed EndCapture ends the capture as well, but for the one that came on a wrong thread. */
    if (site->role != CAPTURE_NONE && (result == 0 || site->role == CAPTURE_FINISH) &&
        result != CAPTURE_ERROR_WRONG_THREAD)
        capture_note(site->role, site->code, *stream, event ? *event : 0);
    /* After that: the wait that draws a stream into a capture goes into the graph itself. */
    return !begins_or_ends && result == 0 && capture_has_stream(site->code, *stream);
}

void call_end_slow(struct thread *t, struct call *c, const struct call_site *site, uint64_t end,
                   int result, const uint64_t *words)
{
    if (c->mode == CALL_PASS)
        return;
    if (c->mode == CALL_OWNER && t->open != c && !find_below(t, c))
        return; /* found stale by a call on another stack, and recorded then */
    call_enter(t, c);
    unsigned flags = c->mode == CALL_NESTED ? RECORD_NESTED : 0;
    if (follow_capture(site, result, words))
        flags |= RECORD_CAPTURED;
    call_append(t, c, site, flags, end, result, words);
    if (c->mode == CALL_OWNER) {
        call_close(t);
        if (t->below_count)
            uncover(t);
    }
    if (atomic_load(&gp.attention) >= ATTENTION_LATE)
        writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
    t->inside = NULL;
}
