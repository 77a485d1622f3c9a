/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/capture.h"

#include <string.h>

#include "api/api.h"
#include "base/futex.h"
#include "record/state.h"
#include "record/thread.h"

#define CAPTURE_MEMBERS_MAX 256
#define CAPTURE_LOCK_NS     100000000u
#define PER_THREAD_STREAM   2u /* CU_STREAM_PER_THREAD */

/* A stream or an event that belongs to a capture. */
struct member {
    uint64_t handle;
    uint32_t capture; /* 1, 2, ...; 0 = free entry */
    bool is_event;
    bool is_origin; /* the stream on which BeginCapture was called */
};

/* By any thread that follows a capture, under the lock. */
static struct member members[CAPTURE_MEMBERS_MAX];
static uint32_t last_capture;
static struct lock members_lock;

/* fork_page.recording counts origins: while there is none nobody looks here. */

/* The per-thread default stream has one handle for all threads; functions for it call it 0. */
static uint64_t stream_key(unsigned code, uint64_t stream)
{
    if (stream == 0 && api_functions[code].for_own_stream)
        stream = PER_THREAD_STREAM;
    return stream == PER_THREAD_STREAM ? stream | (uint64_t)this_thread.tid << 32 : stream;
}

static struct member *find(uint64_t handle, bool is_event)
{
    for (unsigned i = 0; i < CAPTURE_MEMBERS_MAX; i++)
        if (members[i].capture && members[i].handle == handle && members[i].is_event == is_event)
            return &members[i];
    return NULL;
}

static void add(uint64_t handle, bool is_event, uint32_t capture, bool is_origin)
{
    struct member *m = find(handle, is_event);
    for (unsigned i = 0; !m && i < CAPTURE_MEMBERS_MAX; i++)
        if (!members[i].capture)
            m = &members[i];
    if (!m) {
        counter_add(COUNTER_CAPTURE_OVERFLOW, 1);
        return;
    }
    if (is_origin && !(m->capture && m->is_origin))
        atomic_fetch_add(&fork_page.recording, ATTENTION_CAPTURE);
    *m = (struct member){handle, capture, is_event, is_origin};
}

static void finish_capture(uint32_t capture)
{
    for (unsigned i = 0; i < CAPTURE_MEMBERS_MAX; i++) {
        if (members[i].capture != capture)
            continue;
        if (members[i].is_origin)
            atomic_fetch_sub(&fork_page.recording, ATTENTION_CAPTURE);
        members[i].capture = 0;
    }
}

static void finish(uint64_t stream)
{
    struct member *m = find(stream, false);
    if (m)
        finish_capture(m->capture);
}

void capture_note(enum api_capture role, unsigned code, uint64_t stream, uint64_t event)
{
    stream = stream_key(code, stream);
    if (!lock_take(&members_lock, CAPTURE_LOCK_NS)) {
        counter_add(COUNTER_CAPTURE_OVERFLOW, 1);
        return;
    }
    struct member *m;
    switch (role) {
    case API_CAPTURE_BEGIN:
        finish(stream);
        add(stream, false, ++last_capture ? last_capture : ++last_capture, true);
        break;
    case API_CAPTURE_END: finish(stream); break;
    case API_CAPTURE_EVENT_RECORD:
        m = find(stream, false);
        if (m)
            add(event, true, m->capture, false);
        else if ((m = find(event, true)))
            m->capture = 0; /* recorded anew, outside: it carries no capture any more */
        break;
    case API_CAPTURE_EVENT_WAIT:
        m = find(event, true);
        if (m && !find(stream, false))
            add(stream, false, m->capture, false);
        break;
    default: break;
    }
    lock_drop(&members_lock);
}

void capture_drop_stream(uint64_t stream)
{
    if (!attention_captures() || !lock_take(&members_lock, CAPTURE_LOCK_NS))
        return;
    struct member *m = find(stream, false);
    if (m && m->is_origin)
        finish_capture(m->capture);
    else if (m)
        m->capture = 0;
    lock_drop(&members_lock);
}

void capture_drop_all(void)
{
    if (!attention_captures() || !lock_take(&members_lock, CAPTURE_LOCK_NS))
        return;
    for (unsigned i = 0; i < CAPTURE_MEMBERS_MAX; i++)
        if (members[i].capture && members[i].is_origin)
            finish_capture(members[i].capture);
    lock_drop(&members_lock);
}

bool capture_has_stream(unsigned code, uint64_t stream)
{
    stream = stream_key(code, stream);
    if (!lock_take(&members_lock, CAPTURE_LOCK_NS))
        return false;
    bool found = find(stream, false) != NULL;
    lock_drop(&members_lock);
    return found;
}

void capture_reset(void)
{
    memset(members, 0, sizeof members);
    atomic_store(&members_lock.holder, 0);
}
