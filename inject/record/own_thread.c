/* SPDX-License-Identifier: Apache-2.0 */
#include "record/own_thread.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/signals.h"
#include "base/ticks.h"
#include "record/thread.h"

#define STACK_BYTES    (1u << 20)
#define THREADS_SHOWN  8    /* more than ever run at one time */
#define CPU_MASK_BYTES 1024 /* 8,192 processors, the most that Linux supports */

_Atomic uint32_t own_thread_count;

static _Atomic uint32_t tids[THREADS_SHOWN]; /* of running threads; 0: free */
/* changed by each of our threads, as it reports */
static _Atomic uint64_t processor_ns[COST_COUNT];
static __thread uint64_t reported_ns; /* of this thread */

int own_thread_create(void *(*body)(void *), void *data)
{
    pthread_attr_t attributes;
    pthread_t thread;
    uint64_t mask = block_signals(); /* the mask with which the thread starts */
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    atomic_fetch_add(&own_thread_count, 1);
    int error = pthread_create(&thread, &attributes, body, data);
    if (error)
        atomic_fetch_sub(&own_thread_count, 1);
    pthread_attr_destroy(&attributes);
    restore_signals(mask);
    return error;
}

/*
 * Leak checkers find a thread's vector of TLS blocks only through a pointer behind its start, and
 * report each one that exists at exit as "possibly lost": memcheck counts that as an error of the
 * program.
 */
/* their start addresses, as glibc allocates them */
static void *volatile tls_vectors[THREADS_SHOWN];

static void show_tls_vector(void)
{
#if defined(__x86_64__)
    char *vector;
    __asm__("mov %%fs:8, %0" : "=r"(vector));
#else
    char *vector = *(char **)__builtin_thread_pointer();
#endif
    static _Atomic uint32_t shown;
    tls_vectors[atomic_fetch_add(&shown, 1) % THREADS_SHOWN] = vector - 2 * sizeof(void *);
}

/* Takes the affinity of the process's first thread: a thread that pins itself does not pin ours. */
static void take_affinity(void)
{
    unsigned long cpus[CPU_MASK_BYTES / sizeof(unsigned long)];
    long bytes = syscall(SYS_sched_getaffinity, getpid(), sizeof cpus, cpus);
    if (bytes > 0)
        syscall(SYS_sched_setaffinity, 0, bytes, cpus);
}

/* Changes the first entry that is `from`, if any. */
static void change_tid(uint32_t from, uint32_t to)
{
    for (unsigned i = 0; i < THREADS_SHOWN; i++) {
        uint32_t found = from;
        if (atomic_compare_exchange_strong(&tids[i], &found, to))
            return;
    }
}

bool own_thread_is(uint32_t tid)
{
    for (unsigned i = 0; i < THREADS_SHOWN; i++)
        if (atomic_load_explicit(&tids[i], memory_order_relaxed) == tid)
            return true;
    return false;
}

void own_thread_begin(const char *name)
{
    /* With a real-time policy our threads would run before the program's. */
    const struct sched_param no_priority = {0};
    change_tid(0, thread_id());
    show_tls_vector();
    block_program_signals();
    sched_setscheduler(0, SCHED_OTHER, &no_priority);
    take_affinity();
    call_enter(&this_thread, CALL_FOR_GOOD);
    prctl(PR_SET_NAME, name);
}

void own_thread_end(void)
{
    change_tid(thread_id(), 0);
    atomic_fetch_sub(&own_thread_count, 1);
}

void own_thread_report(enum cost_class class)
{
    uint64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    atomic_fetch_add_explicit(&processor_ns[class], now_ns - reported_ns, memory_order_relaxed);
    reported_ns = now_ns;
}

uint64_t own_thread_ns(enum cost_class class)
{
    return atomic_load_explicit(&processor_ns[class], memory_order_relaxed);
}

void own_threads_forget(void)
{
    atomic_store(&own_thread_count, 0);
    memset(tids, 0, sizeof tids);
    for (unsigned i = 0; i < COST_COUNT; i++)
        atomic_store(&processor_ns[i], 0);
}
