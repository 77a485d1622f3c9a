/* SPDX-License-Identifier: Apache-2.0 */
#include "store/writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#include "base/futex.h"
#include "base/leader.h"
#include "base/say.h"
#include "base/ticks.h"
#include "client_note.h"
#include "record/feature.h"
#include "record/own_thread.h"
#include "record/pool.h"
#include "record/start.h"
#include "record/thread.h"
#include "store/compress.h"
#include "store/flight_sink.h"
#include "store/identity.h"
#include "store/meta.h"
#include "store/seal.h"

#define TICK_NS   100000000u /* how often the writer checks while the program is active */
#define ALONE_NS  200000000u /* how often it checks whether other threads are left */
#define SECOND_NS 1000000000u

static struct thread predecessor; /* the first writer's state, for the second one */

/* Writes an anchor, counters and what has become known, once a second and at each flush. */
static void note_state(struct thread *me, uint32_t reason)
{
    identity_append_anchor(me);
    identity_append_counters(me);
    identity_append_libraries(me);
    FEATURES_DO(tick, (me));
    if (reason)
        identity_append_end(me, reason);
}

static void append_notes(struct thread *me)
{
    for (const char *text = note_next(); text; text = note_next())
        meta_append_text(me, META_NOTE, text);
}

/* Does a feature want everything sealed, in order to evaluate it? */
static bool is_due(uint64_t now_ns)
{
    bool is = false;
    for (unsigned i = 0; i < feature_count; i++)
        is |= features[i].is_due && features[i].is_due(now_ns);
    return is;
}

/* Returns true while recording goes on. */
static bool pass(struct sealer *s, struct thread *me, uint64_t *second_ns)
{
    /* A call that a kill ends had not returned at this time; nothing else is written while all
     * threads wait. */
    chunk_set_u64(gp.pool.base, LIVE_OFFSET_ALIVE, ticks_now());
    pool_prepare(&gp.pool);
    uint32_t requested = atomic_load(&gp.writer.requested);
    bool flush = requested != atomic_load(&gp.writer.done);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool second = now_ns - *second_ns >= SECOND_NS;
    bool measure = is_due(now_ns);
    uint32_t reason = flush ? atomic_exchange(&gp.writer.end_reason, 0) : 0;
    if (flush || second) {
        note_state(me, reason);
        *second_ns = now_ns;
    }
    FEATURES_DO(describe, (me, reason != 0));
    append_notes(me);
    bool good = seal_pass(s, me, flush || measure, now_ns);
    own_thread_report(COST_WRITER);
    if (good && (measure || reason)) { /* only now everything is counted */
        FEATURES_DO(look, (me, now_ns, reason != 0));
        append_notes(me);
        good = seal_own(s, me);
    }
    if (flush && good) { /* otherwise the events are in the live file only, which must stay */
        atomic_store(&gp.writer.done, requested);
        futex_wake_all(&gp.writer.done);
    }
    return good;
}

/* Checked at intervals: are only our threads left, and the first one, which has ended? */
static bool is_left_alone(uint64_t *looked_ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint32_t thread_count = 0;
    if (now_ns - *looked_ns < ALONE_NS)
        return false;
    *looked_ns = now_ns;
    return leader_has_ended(&thread_count) && thread_count == 1 + atomic_load(&own_thread_count);
}

/* Runs until the recording ends, or until is_left_alone if `may_be_left`. Returns true in the
 * latter case. */
static bool write_on(struct sealer *s, struct thread *me, bool may_be_left)
{
    uint64_t second_ns = clock_ns(CLOCK_MONOTONIC), looked_ns = second_ns;
    while (pass(s, me, &second_ns)) {
        if (may_be_left && is_left_alone(&looked_ns))
            return true;
        uint32_t wake = atomic_load(&gp.writer.wake);
        atomic_store(&gp.writer.asleep, 1);
        if (atomic_load(&gp.writer.requested) == atomic_load(&gp.writer.done) &&
            !atomic_load(&gp.pool.wanted))
            futex_wait(&gp.writer.wake, wake, TICK_NS);
        atomic_store(&gp.writer.asleep, 0);
    }
    atomic_store(&gp.writer.running, 0); /* first: start.c checks it */
    start_end();
    seal_report_end();
    futex_wake_all(&gp.writer.done);
    futex_wake_all(&gp.pool.free_event);
    return false;
}

/* Continues where the first writer stopped. */
static void *second_main(void *data)
{
    struct thread *me = &this_thread;
    *me = predecessor;
    me->tid = thread_id();
    own_thread_begin("gpuprof");
    write_on(data, me, false);
    own_thread_end();
    return NULL;
}

/*
 * The last thread of the program has ended, and before it the first one had, by pthread_exit.
 * Without us the C library would have ended the process with exit(0) on the last one. This thread
 * does it instead, as an ordinary thread: handlers and destructors may call CUDA and wait for the
 * writer, which is another thread then.
 */
static void end_process(struct sealer *s, struct thread *me)
{
    predecessor = *me;
    *me = (struct thread)THREAD_BLANK;
    own_thread_end(); /* from here on it is a thread of the program */
    /* later events are not recorded; earlier ones are stored */
    if (own_thread_create(second_main, s) != 0) {
        start_end();
        atomic_store(&gp.writer.running, 0);
    }
    pthread_sigmask(SIG_SETMASK, &gp.writer.program_mask, NULL);
    exit(0);
}

static void *writer_main(void *data)
{
    struct sealer *s = data;
    struct thread *me = &this_thread;
    own_thread_begin("gpuprof");
    compress_start();
    pool_prepare(&gp.pool);
    seal_attach(s, me);
    FEATURES_DO(writer_begin, (me));
    identity_append_all(me);
    if (write_on(s, me, true))
        end_process(s, me);
    own_thread_end();
    return NULL;
}

static bool writer_own_start(void)
{
    struct sealer *s = seal_create(flight_or_stream());
    if (!s)
        return false;
    atomic_store(&gp.writer.requested, 0);
    atomic_store(&gp.writer.done, 0);
    atomic_store(&gp.writer.running, 1);
    int error = own_thread_create(writer_main, s);
    if (error) {
        atomic_store(&gp.writer.running, 0);
        seal_free(s);
        errno = error;
        return false;
    }
    return true;
}

bool writer_start(void)
{
    bool started = writer_own_start();
    if (!started)
        say(SAY_START, "recording is off: cannot start the writer thread: %s", error_text(errno));
    return started;
}

void writer_forget(void)
{
    atomic_store(&gp.writer.running, 0);
    own_threads_forget();
    compress_stop();
}
