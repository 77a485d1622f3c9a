/* SPDX-License-Identifier: Apache-2.0 */
#include "host/host_thread.h"

#include <stdatomic.h>
#include <string.h>

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "host/gap.h"
#include "host/quota.h"
#include "host/sampling.h"
#include "record/own_thread.h"
#include "record/recorded.h"
#include "record/thread.h"

#define REST_NS 1000000000u /* longest time between two checks for something to do */
#define TELL_NS 50000000u   /* time between two records of its CPU time */
#define END_NS  500000000u  /* the thread needs some microseconds to end */

static const host_pulse pulses[] = {sampling_pulse, gap_pulse, quota_pulse};

/* Each member names its writer. Reset in the child of a fork. */
static struct {
    /* futex: the thread exists; set by the thread that starts it, and by itself */
    _Atomic uint32_t running;
    _Atomic uint32_t wake;   /* futex: incremented to make the thread check */
    _Atomic uint32_t ending; /* set by the thread that ends the recording */
} control;

/* Calls those that are due; returns when the next one is due. */
static uint64_t pulse_all(struct thread *me, uint64_t now_ns)
{
    uint64_t next_ns = now_ns + REST_NS;
    for (unsigned i = 0; i < sizeof pulses / sizeof pulses[0]; i++) {
        uint64_t due_ns = pulses[i](me, now_ns);
        next_ns = due_ns < next_ns ? due_ns : next_ns;
    }
    return next_ns;
}

/* Runs until the process or the recording ends. Nothing is observed while calls are off. */
static void pulse_on(struct thread *me)
{
    uint64_t report_ns = 0;
    while (!atomic_load(&control.ending) && atomic_load(&gp.writer.running)) {
        uint32_t wake = atomic_load(&control.wake);
        if (!thread_takes_part(me) && !thread_attach(me))
            return;
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t next_ns = recorded_asked() & OFF_CALLS ? now_ns + REST_NS : pulse_all(me, now_ns);
        if (now_ns >= report_ns) {
            own_thread_report(COST_HOST);
            report_ns = now_ns + TELL_NS;
        }
        now_ns = clock_ns(CLOCK_MONOTONIC);
        if (next_ns > now_ns)
            futex_wait(&control.wake, wake, next_ns - now_ns);
    }
}

static void *host_main(void *data)
{
    struct thread *me = &this_thread;
    (void)data;
    own_thread_begin("gpuprof-host");
    pulse_on(me);
    if (thread_takes_part(me)) {
        gap_end(me);
        sampling_end(me);
        thread_leave(me);
    }
    own_thread_report(COST_HOST);
    atomic_store(&control.running, 0);
    futex_wake_all(&control.running);
    own_thread_end();
    return NULL;
}

void host_start(struct thread *writer)
{
    (void)writer;
    if (!gap_is_wanted() && gp.settings.numbers[SETTING_SAMPLE] == SETTING_OFF)
        return;
    atomic_store(&control.running, 1);
    if (own_thread_create(host_main, NULL) != 0) {
        atomic_store(&control.running, 0);
        note(SAY_HOST, "the program's threads are not observed: cannot start a thread for it");
    }
}

void host_wake(void)
{
    atomic_fetch_add(&control.wake, 1);
    if (atomic_load(&control.running))
        futex_wake_all(&control.wake);
}

void host_end(uint64_t ns)
{
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + (ns < END_NS ? ns : END_NS);
    atomic_store(&control.ending, 1);
    host_wake();
    while (atomic_load(&control.running) && now_ns < end_ns) {
        futex_wait(&control.running, 1, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
}

void host_forget(void)
{
    memset(&control, 0, sizeof control);
}
