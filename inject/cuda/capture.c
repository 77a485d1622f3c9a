/* SPDX-License-Identifier: Apache-2.0 */
#include "cuda/capture.h"

#include <string.h>

#include "api/api.h"
#include "base/futex.h"
#include "base/hash.h"
#include "base/pages.h"
#include "record/state.h"
#include "record/thread.h"

#define MEMBERS_FIRST     512u       /* initial size; doubles when needed */
#define MEMBERS_MAX       (1u << 16) /* at most half are used */
#define CAPTURE_LOCK_NS   100000000u
#define PER_THREAD_STREAM 2u /* value of CU_STREAM_PER_THREAD */

/* A stream or event that belongs or belonged to a capture. */
struct member {
    uint64_t handle;
    uint32_t capture; /* number of the capture, from 1; 0: none now */
    bool is_used;     /* false: a free place */
    bool is_event;
    bool is_origin; /* this stream began the capture */
};

/* Any thread that follows a capture uses these, under the lock. */
static struct member first_members[MEMBERS_FIRST];
static struct {
    struct member *list; /* hash table with open addressing */
    uint32_t capacity;
    uint32_t used;
    uint32_t origins;
    uint32_t last_capture;
} members = {.list = first_members, .capacity = MEMBERS_FIRST};
static struct lock members_lock;

/* fork_page.recording counts the capturing origins; while it is 0 no thread searches here. */

/* The per-thread default stream has one handle for all threads; its functions call it 0. */
static uint64_t stream_key(unsigned code, uint64_t stream)
{
    if (stream == 0 && api_functions[code].for_own_stream)
        stream = PER_THREAD_STREAM;
    return stream == PER_THREAD_STREAM ? stream | (uint64_t)this_thread.tid << 32 : stream;
}

/* Returns the member's place, or the free place where it belongs. */
static struct member *capture_place_of(struct member *list, uint32_t capacity, uint64_t handle,
                                       bool is_event)
{
    uint32_t i = (uint32_t)(hash_mix(is_event, handle) >> 32) & (capacity - 1);
    while (list[i].is_used && (list[i].handle != handle || list[i].is_event != is_event))
        i = (i + 1) & (capacity - 1);
    return &list[i];
}

static struct member *capture_find(uint64_t handle, bool is_event)
{
    struct member *m = capture_place_of(members.list, members.capacity, handle, is_event);
    return m->capture ? m : NULL;
}

/* Drops members that belong to no capture; enlarges the table if that is not enough. */
static bool capture_make_room(void)
{
    uint32_t in_use = 0, capacity = members.capacity;
    for (uint32_t i = 0; i < members.capacity; i++)
        in_use += members.list[i].capture != 0;
    if (4 * in_use > capacity)
        capacity *= 2;
    struct member *list = capacity <= MEMBERS_MAX ? pages_map(capacity * sizeof *list) : NULL;
    if (!list)
        return false;
    for (uint32_t i = 0; i < members.capacity; i++) {
        const struct member *m = &members.list[i];
        if (m->capture)
            *capture_place_of(list, capacity, m->handle, m->is_event) = *m;
    }
    struct member *old = members.list;
    uint32_t old_capacity = members.capacity;
    members.list = list; /* publish before the old table is freed: another thread may be forking */
    members.capacity = capacity;
    members.used = in_use;
    if (old != first_members)
        munmap(old, old_capacity * sizeof *old);
    return true;
}

static void capture_drop(struct member *m)
{
    if (m->is_origin && --members.origins == 0)
        atomic_fetch_sub(&fork_page.recording, ATTENTION_CAPTURE);
    m->capture = 0;
    m->is_origin = false;
}

static void capture_add(uint64_t handle, bool is_event, uint32_t capture, bool is_origin)
{
    struct member *m = capture_place_of(members.list, members.capacity, handle, is_event);
    if (!m->is_used && 2 * members.used >= members.capacity) {
        if (!capture_make_room()) {
            counter_add(COUNTER_CAPTURE_OVERFLOW, 1);
            return;
        }
        m = capture_place_of(members.list, members.capacity, handle, is_event);
    }
    if (m->capture)
        capture_drop(m);
    members.used += !m->is_used;
    if (is_origin && members.origins++ == 0)
        atomic_fetch_add(&fork_page.recording, ATTENTION_CAPTURE);
    *m = (struct member){handle, capture, true, is_event, is_origin};
}

static void finish_capture(uint32_t capture)
{
    for (uint32_t i = 0; i < members.capacity; i++)
        if (members.list[i].capture == capture)
            capture_drop(&members.list[i]);
}

static void capture_finish(uint64_t stream)
{
    struct member *m = capture_find(stream, false);
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
        capture_finish(stream);
        members.last_capture += members.last_capture == UINT32_MAX ? 2 : 1;
        capture_add(stream, false, members.last_capture, true);
        break;
    case API_CAPTURE_END: capture_finish(stream); break;
    case API_CAPTURE_EVENT_RECORD:
        m = capture_find(stream, false);
        if (m)
            capture_add(event, true, m->capture, false);
        else if ((m = capture_find(event, true)))
            capture_drop(
                m); /* recorded again outside a capture: the event no longer belongs to one */
        break;
    case API_CAPTURE_EVENT_WAIT:
        m = capture_find(event, true);
        if (m && !capture_find(stream, false))
            capture_add(stream, false, m->capture, false);
        break;
    default: break;
    }
    lock_drop(&members_lock);
}

void capture_drop_stream(uint64_t stream)
{
    if (!attention_captures() || !lock_take(&members_lock, CAPTURE_LOCK_NS))
        return;
    struct member *m = capture_find(stream, false);
    if (m && m->is_origin)
        finish_capture(m->capture);
    else if (m)
        capture_drop(m);
    lock_drop(&members_lock);
}

void capture_drop_all(void)
{
    if (!attention_captures() || !lock_take(&members_lock, CAPTURE_LOCK_NS))
        return;
    for (uint32_t i = 0; i < members.capacity; i++)
        if (members.list[i].capture)
            capture_drop(&members.list[i]);
    lock_drop(&members_lock);
}

bool capture_has_stream(unsigned code, uint64_t stream)
{
    stream = stream_key(code, stream);
    if (!lock_take(&members_lock, CAPTURE_LOCK_NS))
        return false;
    bool found = capture_find(stream, false) != NULL;
    lock_drop(&members_lock);
    return found;
}

void capture_reset(void)
{
    memset(members.list, 0, members.capacity * sizeof *members.list);
    members.used = members.origins = 0;
    atomic_store(&members_lock.holder, 0);
}
