/* SPDX-License-Identifier: Apache-2.0 */
#include <signal.h>
#include <string.h>
#include <time.h>

#include "sim_cupti.h"

/*
 * One lock, held while the client's buffer callbacks run, as the real one holds its own. Nobody
 * waits for it without an end: what would be a deadlock there is a message here.
 */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *lock_holder; /* atomic, like the rest: read by whoever gives up */

static struct {
    const char *name; /* of the client's callback that is running */
    uint64_t since_ns;
} running;

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool is_started, has_work;
    uint32_t period_ms;
} worker = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};

static bool lock_wait(void)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + cupti_switches.lock_ms * 1000000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    return pthread_mutex_clocklock(&lock, CLOCK_MONOTONIC, &until) == 0;
}

void cupti_lock(const char *function)
{
    if (cupti_thread.buffer_callback)
        cupti_misuse("%s called inside the client's %s callback", function,
                     cupti_thread.buffer_callback);
    if (pthread_mutex_trylock(&lock) != 0 && !lock_wait()) {
        const char *name = __atomic_load_n(&running.name, __ATOMIC_ACQUIRE);
        cupti_misuse("lock inversion: %s waited %llu ms for the lock that %s holds%s%s", function,
                     (unsigned long long)cupti_switches.lock_ms,
                     __atomic_load_n(&lock_holder, __ATOMIC_ACQUIRE),
                     name ? " in the client's callback: " : "", name ? name : "");
    }
    __atomic_store_n(&lock_holder, function, __ATOMIC_RELEASE);
}

void cupti_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

void cupti_callback_begin(const char *name)
{
    cupti_thread.buffer_callback = name;
    __atomic_store_n(&running.since_ns, sim_now_ns(), __ATOMIC_RELAXED);
    __atomic_store_n(&running.name, name, __ATOMIC_RELEASE);
}

void cupti_callback_end(void)
{
    __atomic_store_n(&running.name, NULL, __ATOMIC_RELEASE);
    cupti_thread.buffer_callback = NULL;
}

/* A callback that waits for a lock whose owner waits for us never returns. */
static void callback_watch(void)
{
    const char *name = __atomic_load_n(&running.name, __ATOMIC_ACQUIRE);
    uint64_t since_ns = __atomic_load_n(&running.since_ns, __ATOMIC_RELAXED);
    if (name && sim_now_ns() > since_ns + cupti_switches.lock_ms * 1000000)
        cupti_misuse("lock inversion: the client's %s callback has not returned for %llu ms, "
                     "while %s holds CUPTI's lock",
                     name, (unsigned long long)cupti_switches.lock_ms,
                     __atomic_load_n(&lock_holder, __ATOMIC_ACQUIRE));
}

static void worker_wait(uint64_t wait_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    uint64_t ns = (uint64_t)until.tv_nsec + wait_ms * 1000000;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    if (!worker.has_work)
        pthread_cond_clockwait(&worker.wake, &worker.lock, CLOCK_MONOTONIC, &until);
}

/* It must not wait for the lock: a callback that hangs has it. */
static void worker_deliver(void)
{
    if (pthread_mutex_trylock(&lock) != 0)
        return;
    __atomic_store_n(&lock_holder, "the worker", __ATOMIC_RELEASE);
    clock_anchor();
    buffer_flush(FLUSH_FULL);
    pthread_mutex_unlock(&lock);
}

static void *worker_main(void *unused)
{
    enum { WATCH_MS = 100 };
    uint64_t last_ns = sim_now_ns();
    (void)unused;
    pthread_setname_np(pthread_self(), "simcupti-worker");
    cupti_thread.is_inside = true;
    pthread_mutex_lock(&worker.lock);
    for (;;) {
        uint64_t period_ms = worker.period_ms;
        worker_wait(period_ms && period_ms < WATCH_MS ? period_ms : WATCH_MS);
        uint64_t now_ns = sim_now_ns();
        bool is_due = period_ms && now_ns >= last_ns + period_ms * 1000000;
        bool deliver = worker.has_work || is_due;
        worker.has_work = false;
        pthread_mutex_unlock(&worker.lock);
        callback_watch();
        if (deliver && !cupti_is_dead()) {
            last_ns = now_ns;
            worker_deliver();
        }
        pthread_mutex_lock(&worker.lock);
    }
    return NULL;
}

void cupti_worker_start(void)
{
    sigset_t all, old;
    pthread_t thread;
    pthread_mutex_lock(&worker.lock);
    if (!worker.is_started) {
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &old);
        if (pthread_create(&thread, NULL, worker_main, NULL) == 0) {
            pthread_detach(thread);
            worker.is_started = true;
        }
        pthread_sigmask(SIG_SETMASK, &old, NULL);
        cupti_note("worker", 0, NULL, 0);
    }
    pthread_mutex_unlock(&worker.lock);
}

void cupti_worker_wake(void)
{
    pthread_mutex_lock(&worker.lock);
    worker.has_work = true;
    pthread_cond_signal(&worker.wake);
    pthread_mutex_unlock(&worker.lock);
}

void cupti_worker_period(uint32_t period_ms)
{
    pthread_mutex_lock(&worker.lock);
    worker.period_ms = period_ms;
    pthread_cond_signal(&worker.wake);
    pthread_mutex_unlock(&worker.lock);
}
