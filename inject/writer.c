/* SPDX-License-Identifier: Apache-2.0 */
#include "writer.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "call.h"
#include "compress.h"
#include "futex.h"
#include "identity.h"
#include "pool.h"
#include "resolve.h"
#include "seal.h"
#include "start.h"
#include "thread.h"
#include "ticks.h"

#define STACK_BYTES (1u << 20)
#define TICK_NS     100000000u /* how often the writer looks while something happens */
#define SECOND_NS   1000000000u

void writer_wake(void)
{
    atomic_fetch_add(&gp.writer.wake, 1);
    if (atomic_load(&gp.writer.asleep))
        futex_wake_all(&gp.writer.wake);
}

bool writer_flush(enum end_reason reason, uint64_t ns)
{
    if (!atomic_load(&gp.writer.running))
        return false;
    if (reason)
        atomic_store(&gp.writer.end_reason, reason);
    uint32_t wanted = 1 + atomic_fetch_add(&gp.writer.requested, 1);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
    writer_wake();
    for (;;) {
        uint32_t done = atomic_load(&gp.writer.done);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if ((int32_t)(done - wanted) >= 0)
            return true;
        if (now_ns >= end_ns || !atomic_load(&gp.writer.running))
            return false;
        futex_wait(&gp.writer.done, done, end_ns - now_ns);
    }
}

/* Anchor, counters and whatever became known, once a second and at each flush. */
static void note_state(struct thread *me, uint32_t reason)
{
    identity_append_anchor(me);
    identity_append_counters(me);
    identity_append_libraries(me);
    if (reason)
        identity_append_end(me, reason);
}

/* True while recording goes on. */
static bool pass(struct sealer *s, struct thread *me, uint64_t *second_ns)
{
    uint32_t requested = atomic_load(&gp.writer.requested);
    bool flush = requested != atomic_load(&gp.writer.done);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool second = now_ns - *second_ns >= SECOND_NS;
    if (flush || second) {
        note_state(me, flush ? atomic_exchange(&gp.writer.end_reason, 0) : 0);
        resolve_refresh();
        *second_ns = now_ns;
    }
    bool good = seal_pass(s, me, flush, now_ns);
    if (flush && good) { /* else the events are in the live file only, and it must stay */
        atomic_store(&gp.writer.done, requested);
        futex_wake_all(&gp.writer.done);
    }
    return good;
}

static void *writer_main(void *data)
{
    struct sealer *s = data;
    struct thread *me = &this_thread;
    me->inside = CALL_FOR_GOOD;
    prctl(PR_SET_NAME, "gpuprof");
    compress_start();
    seal_attach(s, me);
    identity_append_all(me);
    uint64_t second_ns = clock_ns(CLOCK_MONOTONIC);
    while (pass(s, me, &second_ns)) {
        uint32_t wake = atomic_load(&gp.writer.wake);
        atomic_store(&gp.writer.asleep, 1);
        if (atomic_load(&gp.writer.requested) == atomic_load(&gp.writer.done) &&
            !atomic_load(&gp.pool.wanted))
            futex_wait(&gp.writer.wake, wake, TICK_NS);
        atomic_store(&gp.writer.asleep, 0);
    }
    start_end();
    atomic_store(&gp.writer.running, 0);
    futex_wake_all(&gp.writer.done);
    futex_wake_all(&gp.pool.free_event);
    return NULL;
}

bool writer_start(void)
{
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, old;
    struct sealer *s = seal_create();
    if (!s)
        return false;
    atomic_store(&gp.writer.requested, 0);
    atomic_store(&gp.writer.done, 0);
    atomic_store(&gp.writer.running, 1);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    int error = pthread_create(&thread, &attributes, writer_main, s);
    pthread_attr_destroy(&attributes);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (error) {
        atomic_store(&gp.writer.running, 0);
        seal_free(s);
        errno = error;
        return false;
    }
    return true;
}

void writer_forget(void)
{
    atomic_store(&gp.writer.running, 0);
    compress_stop();
}
