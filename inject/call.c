/* SPDX-License-Identifier: Apache-2.0 */
#include "call.h"

#include <errno.h>

#include "pool.h"
#include "writer.h"

void call_close_stale(struct thread *t)
{
    const uint64_t *open = (const uint64_t *)(const void *)(t->chunk + LIVE_CHUNK_OPEN);
    uint64_t head = open[0];
    unsigned count = (unsigned)(head >> 16) & 0xffff;
    t->open = NULL;
    counter_add(COUNTER_STALE, 1);
    if (!head)
        return; /* the thread had no chunk when the call began */
    if (count > LIVE_OPEN_ARGS)
        count = LIVE_OPEN_ARGS;
    struct record r = {.type = RECORD_CALL,
                       .flags = RECORD_STALE,
                       .code = (uint16_t)head,
                       .begin = open[1],
                       .arg_count = (uint8_t)count};
    r.duration = ticks_now() - r.begin;
    memcpy(r.args, open + 2, 8 * count);
    chunk_set_u64(t->chunk, LIVE_CHUNK_OPEN, 0);
    thread_append(t, &r);
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

bool call_begin_slow(struct thread *t, struct call *c)
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
    if (!t->open)
        return true;
    if (call_is_live(t->open, c)) {
        c->mode = CALL_NESTED;
        return gp.nested;
    }
    c->canary = call_canary(c);
    t->inside = c;
    call_close_stale(t);
    t->inside = NULL;
    return true;
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
