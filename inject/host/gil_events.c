/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gil_events.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "base/ticks.h"
#include "hook/call.h"
#include "host/gil_wait.h"
#include "host/os_calls.h"
#include "python/python.h"
#include "record/recorded.h"
#include "record/thread.h"
#include "stack/stack.h"

#define THREADS_MAX 1024u       /* threads that ever take the lock; further ones are not recorded */
#define REST_NS     1000000000u /* how often the sums of short waits are recorded */

/* A thread's use of the lock. Only the thread itself uses it, except `tid` and the sums, which
 * others read. */
struct holder {
    _Atomic uint32_t tid;  /* 0: free */
    uint32_t other;        /* the thread that held it before */
    uint64_t wait_begin;   /* in ticks; 0: it is not waiting */
    uint64_t hold_begin;   /* 0: it does not hold the lock */
    uint64_t switch_count; /* waits that timed out: it asks for the lock again */
    uint64_t reported_at;  /* ticks: when its sums were last recorded */
    _Atomic uint64_t sums[RECORD_GIL_REST_ARGS];
};

/* THREADS_MAX entries in the client's memory; set before the lock is watched */
static struct holder *holders;
_Static_assert(THREADS_MAX * sizeof(struct holder) <= OS_HOLDERS_BYTES, "they have room there");
static _Atomic uint32_t holder_count; /* places in use; incremented by the thread that takes one */
static _Atomic uint32_t generation = 1;
static _Atomic uint32_t last_tid;     /* the thread that last took the lock; set by that thread */
static struct python_gil_place place; /* set by the writer before the lock is watched */
static uint64_t threshold, stack_ticks, rest_ticks;

/* The calling thread's place, if it belongs to this generation. */
static __thread struct {
    uint32_t generation;
    struct holder *holder;
} own;

static struct holder *own_holder(void)
{
    uint32_t now = atomic_load_explicit(&generation, memory_order_relaxed);
    if (likely(own.generation == now))
        return own.holder;
    uint32_t index = atomic_fetch_add(&holder_count, 1);
    own.generation = now;
    own.holder = index < THREADS_MAX ? &holders[index] : NULL;
    if (own.holder) {
        own.holder->reported_at = ticks_now();
        atomic_store(&own.holder->tid, thread_id());
    }
    return own.holder;
}

static void gil_events_add(struct holder *h, unsigned sum, uint64_t amount)
{
    uint64_t before = atomic_load_explicit(&h->sums[sum], memory_order_relaxed);
    atomic_store_explicit(&h->sums[sum], before + amount, memory_order_relaxed);
}

static void report_rest(struct thread *t, struct holder *h, uint32_t tid)
{
    struct record r = {RECORD_WITH(GIL_REST, 0), .begin = ticks_now()};
    uint64_t any = 0;
    for (unsigned i = 0; i <= GIL_REST_HOLD_NS; i++)
        any |= r.args[i] = atomic_exchange(&h->sums[i], 0);
    r.args[GIL_REST_TID] = tid;
    h->reported_at = r.begin;
    if (any)
        thread_append(t, &r);
}

/* The thread has waited for the lock, or held it, from `begin` to `end`. */
static void gil_events_report(enum gil_part part, struct holder *h, uint64_t begin, uint64_t end)
{
    struct thread *t = &this_thread;
    struct call call;
    uint64_t ticks = end - begin;
    bool is_reported = ticks >= threshold, rests = end - h->reported_at >= rest_ticks;
    if (recorded_off() & OFF_CALLS)
        return;
    if (!is_reported) {
        unsigned count = part == GIL_WAITED ? GIL_REST_WAITS : GIL_REST_HOLDS;
        uint64_t ns = (uint64_t)(((unsigned __int128)ticks * gp.header.scale.mult) >> 32);
        gil_events_add(h, count, 1);
        gil_events_add(h, count + 1, ns); /* the sum of ns follows its count */
    }
    if ((!is_reported && !rests) || epoch_now() == EPOCH_NONE || !call_enter_quietly(t, &call))
        return;
    bool before = thread_hurry(t, true);
    if (thread_takes_part(t) || thread_attach(t)) {
        struct gil_wait it = {.begin = begin, .end = end, .other = h->other, .part = (uint8_t)part};
        it.switch_count = part == GIL_WAITED ? h->switch_count : 0;
        if (is_reported && ticks >= stack_ticks && !(recorded_off() & OFF_STACKS))
            it.stack = stack_take_python(t);
        if (is_reported)
            gil_report_wait(t, &it);
        if (rests)
            report_rest(t, h, 0);
    }
    thread_hurry(t, before);
    call_leave(t);
}

static void end_wait(struct holder *h, uint64_t now)
{
    if (h->wait_begin)
        gil_events_report(GIL_WAITED, h, h->wait_begin, now);
    h->wait_begin = 0;
    h->switch_count = 0;
}

/* A condition was signalled: the lock is free, or it is taken. */
static void signalled(struct holder *h, bool is_taken, uint64_t now)
{
    if (is_taken) {
        uint32_t before = atomic_exchange_explicit(
            &last_tid, atomic_load_explicit(&h->tid, memory_order_relaxed), memory_order_relaxed);
        end_wait(h, now);
        h->other = before;
        h->hold_begin = now;
    } else if (h->hold_begin) {
        gil_events_report(GIL_HELD, h, h->hold_begin, now);
        h->hold_begin = 0;
    }
}

/*
 * A wait for the lock consists of slices, each as long as the interpreter's switch interval. A wait
 * on the other condition belongs to a thread that gave the lock up on request, and waits until
 * another thread has it. It counts as a wait of its own, since no wait for the lock need follow.
 */
static bool take_event(enum os_condition_event event, const void *condition, uint64_t now,
                       int result)
{
    int saved = errno;
    uint64_t at = (uint64_t)(uintptr_t)condition;
    bool is_drop = at == place.dropped;
    struct holder *h = is_drop || at == place.taken ? own_holder() : NULL;
    if (!h || this_thread.inside == CALL_FOR_GOOD)
        return false;
    if (event == OS_CONDITION_SIGNALS) {
        signalled(h, !is_drop, now);
    } else if (event == OS_CONDITION_WAITS && !h->wait_begin) {
        h->wait_begin = now;
        h->other = atomic_load_explicit(&last_tid, memory_order_relaxed);
    } else if (event == OS_CONDITION_WAITED) {
        h->switch_count += result == ETIMEDOUT;
        if (!is_drop)
            end_wait(h, now);
    }
    errno = saved;
    return true;
}

static uint64_t gil_events_ticks_of(uint64_t ns)
{
    return ns == SETTING_OFF
               ? UINT64_MAX
               : (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / gp.header.scale.mult);
}

void gil_tick(struct thread *writer)
{
    (void)writer;
    struct os_client *client = os_client();
    if (!client || gp.settings.numbers[SETTING_OS] == SETTING_OFF ||
        atomic_load(&client->watched_bytes) || !python_gil_find(&place))
        return;
    threshold = gil_events_ticks_of(gp.settings.numbers[SETTING_OS]);
    stack_ticks = gil_events_ticks_of(gp.settings.numbers[SETTING_OS_BACKTRACE]);
    rest_ticks = gil_events_ticks_of(REST_NS);
    holders = client->holders;
    os_watch_conditions(take_event);
    atomic_store(&client->watched, place.low);
    atomic_store(&client->watched_bytes, place.high - place.low);
}

void gil_started(void)
{
    gil_tick(NULL);
}

/* Called for all threads by the one that ends the process: the others may be gone. */
void gil_end(uint64_t ns)
{
    struct thread *t = &this_thread;
    uint32_t count = atomic_load(&holder_count);
    (void)ns;
    for (uint32_t i = 0; thread_takes_part(t) && i < count && i < THREADS_MAX; i++)
        if (atomic_load(&holders[i].tid))
            report_rest(t, &holders[i], atomic_load(&holders[i].tid));
}

void gil_forget(void)
{
    atomic_fetch_add(&generation, 1);
    atomic_store(&holder_count, 0);
    if (holders)
        memset(holders, 0, THREADS_MAX * sizeof *holders);
}
