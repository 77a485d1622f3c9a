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

void call_uncover(struct thread *t)
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
        call_uncover(t);
}

bool call_find_below(struct thread *t, struct call *c)
{
    uint32_t i = 0;
    while (i < t->below_count && t->below[i].call != c)
        i++;
    if (i == t->below_count)
        return false;
    t->inside = c;
    while (t->open != c) /* those on top of it were left by another door */
        close_stale(t);
    t->inside = NULL;
    return true;
}

void call_store_late(void)
{
    writer_flush(0, gp.settings.numbers[SETTING_EXIT_WAIT]);
}

/* True: not to be recorded, because we are inside our own code on this thread. */
static bool is_inside(struct thread *t, const struct call *c)
{
    if (!t->inside)
        return false;
    if (call_is_live(t->inside, c)) {
        counter_add(COUNTER_UNRECORDED, 1);
        return true;
    }
    t->inside = NULL; /* a signal handler left our code by longjmp */
    return false;
}

bool call_begin_slow(struct thread *t, struct call *c, uintptr_t caller)
{
    if (is_inside(t, c))
        return false;
    if (t->epoch != atomic_load(&gp.page->epoch)) {
        c->canary = call_canary(c);
        t->inside = c;
        bool attached = thread_attach(t);
        t->inside = NULL;
        if (!attached)
            return false;
    }
    if (t->open && !call_is_live(t->open, c)) {
        c->canary = call_canary(c);
        t->inside = c;
        while (t->open && !call_is_live(t->open, c))
            close_stale(t);
        t->inside = NULL;
    }
    if (!t->open)
        return true;
    if (resolve_is_cuda(caller)) {
        c->mode = CALL_NESTED;
        return gp.nested;
    }
    if (cover(t))
        return true;
    counter_add(COUNTER_UNRECORDED, 1);
    return false;
}

void call_name_kernel(struct thread *t, struct call *c, uint64_t handle)
{
    t->inside = c;
    name_first_sight(t, handle);
    t->inside = NULL;
}

void call_note_capture(unsigned code, enum capture_role role, int result, uint64_t stream,
                       uint64_t event)
{
    /* A failed EndCapture ends the capture as well, but for the one that came on a wrong thread. */
    if ((result != 0 && role != CAPTURE_FINISH) || result == CAPTURE_ERROR_WRONG_THREAD)
        return;
    bool on_event = role == CAPTURE_EVENT_RECORD || role == CAPTURE_EVENT_WAIT;
    if (on_event && atomic_load(&gp.capture_count) == 0)
        return;
    capture_note(role, code, stream, event);
}
