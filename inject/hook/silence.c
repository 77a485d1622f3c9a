/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/silence.h"

#include <errno.h>
#include <stdlib.h>

#include "base/descriptor.h"
#include "base/futex.h"
#include "base/ticks.h"
#include "record/recorded.h"

/*
 * A thread is observed only while it has credit: it earns 1/500 of its time (0.2 %), up to
 * CREDIT_NS, and an observation costs the time that it took. So over any time, observations cost
 * that share and one credit at most. Stacks seen for the first time take far longer, but occur
 * once: of a process's first FIRSTS_MAX slow observations, only USUAL_NS each are charged.
 */
#define SILENCE_PART 500
#define CREDIT_NS    200000
#define USUAL_NS     20000
#define FIRSTS_MAX   64

#define TEXT_BYTES  96 /* room for three numbers */
#define FILES_MAX   64 /* open files per process; the run delay of further threads is not known */
#define TID_FILLING UINT32_MAX

/* An open file with a thread's run delay: opening takes far longer than reading. The thread opens
 * it when it takes part; the writer closes it when the thread has ended. */
struct delay_file {
    _Atomic uint32_t tid; /* 0: free */
    struct kept_file file;
};

static struct delay_file files[FILES_MAX];
static _Atomic uint32_t first_count; /* slow observations so far, on any thread */

static uint64_t silence_ticks_of(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / gp.header.scale.mult);
}

static uint64_t silence_ns_of(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * gp.header.scale.mult) >> CLOCK_SCALE_SHIFT);
}

void silence_start(void)
{
    uint64_t ns = gp.settings.numbers[SETTING_SILENCE];
    bool is_off = ns == SETTING_OFF || recorded_asked() & OFF_STACKS;
    /* a change before the first recording, which starts with this function */
    if (!gp.header.scale.mult)
        return;
    atomic_store(&fork_page.silent_ticks, is_off ? UINT64_MAX : silence_ticks_of(ns));
}

static void silence_close_file(struct delay_file *f)
{
    kept_file_close(&f->file);
    atomic_store_explicit(&f->tid, 0, memory_order_release);
}

/* Returns NULL if too many threads have a file, or the kernel lacks it. */
static struct delay_file *take_file(uint32_t tid)
{
    for (unsigned i = 0; i < FILES_MAX; i++) {
        uint32_t nobody = 0;
        if (atomic_load_explicit(&files[i].tid, memory_order_relaxed) ||
            !atomic_compare_exchange_strong(&files[i].tid, &nobody, TID_FILLING))
            continue;
        bool is_there = kept_file_open(&files[i].file, "/proc/thread-self/schedstat");
        atomic_store_explicit(&files[i].tid, is_there ? tid : 0, memory_order_release);
        return is_there ? &files[i] : NULL;
    }
    return NULL;
}

/* Returns the run delay in ns, the second of three numbers; 0: not known. */
static uint64_t read_delay(struct thread_look *l)
{
    char text[TEXT_BYTES], *rest = text;
    if (!l->delay || !kept_file_read(&l->delay->file, text, sizeof text)) {
        l->delay = NULL;
        return 0;
    }
    (void)strtoull(text, &rest, 10);
    char *second = rest;
    uint64_t ns = strtoull(second, &rest, 10);
    return rest == second || *rest != ' ' ? 0 : ns + 1;
}

/* Reads the values from which the next times count. */
static void read_times(struct thread_look *l, uint64_t now)
{
    l->read_ticks = now;
    l->read_cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    l->read_delay_ns = read_delay(l);
}

/* Returns for how many of the `ticks` since read_times the thread ran. Reads the CPU clock, a
 * system call in which threads switch, only if it may have been off the processor. */
static uint64_t ran(const struct thread_look *l, uint64_t ticks)
{
    if (ticks <= silence_ticks_of(USUAL_NS))
        return ticks;
    uint64_t own = silence_ticks_of(clock_ns(CLOCK_THREAD_CPUTIME_ID) - l->read_cpu_ns);
    return own < ticks ? own : ticks;
}

static void earn(struct thread_look *l, uint64_t now)
{
    int64_t most = (int64_t)silence_ticks_of(CREDIT_NS);
    int64_t earned = (int64_t)((now - l->credit_at) / SILENCE_PART);
    l->credit = earned >= most - l->credit ? most : l->credit + earned;
    l->credit_at = now;
}

static void silence_spend(struct thread_look *l, uint64_t ticks)
{
    uint64_t usual = silence_ticks_of(USUAL_NS);
    if (ticks > usual && atomic_load_explicit(&first_count, memory_order_relaxed) < FIRSTS_MAX &&
        atomic_fetch_add_explicit(&first_count, 1, memory_order_relaxed) < FIRSTS_MAX)
        ticks = usual;
    l->credit -= (int64_t)ticks;
}

bool silence_may_look(struct thread *t, uint64_t begin)
{
    struct thread_look *l = &t->cost->look;
    if (t->cost == &thread_cost_shared) /* it has no cost sums of its own */
        return false;
    earn(l, begin);
    return l->credit > 0;
}

void silence_report(struct thread *t, uint64_t begin, uint64_t ticks)
{
    int saved = errno;
    struct thread_look *l = &t->cost->look;
    uint64_t reading = ticks_now(), since = l->read_ticks;
    uint64_t cpu_ns = l->read_cpu_ns, delay_ns = l->read_delay_ns;
    read_times(l, reading);
    bool knows_delay = since && delay_ns && l->read_delay_ns >= delay_ns;
    struct record r = {
        RECORD_WITH(SILENCE, [SILENCE_NS] = silence_ns_of(ticks),
                    [SILENCE_SINCE] = since ? silence_ns_of(reading - since) : 0,
                    [SILENCE_CPU] = since ? l->read_cpu_ns - cpu_ns : 0,
                    [SILENCE_DELAY] = knows_delay ? l->read_delay_ns - delay_ns + 1 : 0),
        .begin = begin};
    thread_append(t, &r);
    uint64_t cost = ran(l, ticks_now() - reading);
    thread_cost_time(t->cost, COST_SILENCE, cost);
    silence_spend(l, reading - begin + cost);
    errno = saved;
}

void silence_called(struct thread *t, uint64_t ticks)
{
    uint64_t silent = atomic_load_explicit(&fork_page.silent_ticks, memory_order_relaxed);
    struct thread_look *l = &t->cost->look;
    bool is_first = !t->ended; /* or the first since calls were passed by, when it may have slept */
    bool is_due = silent != UINT64_MAX && !calls_are_off() && (is_first || ticks >= silent);
    if (!is_due || !thread_takes_part(t) || t->cost == &thread_cost_shared)
        return;
    uint64_t now = ticks_now();
    l->read_ticks = 0;
    if (!silence_may_look(t, now))
        return;
    int saved = errno;
    bool has_started = l->read_cpu_ns;
    read_times(l, now);
    uint64_t cost = ran(l, ticks_now() - now);
    if (!has_started) /* this is part of the thread's start, which is timed already */
        thread_cost_raise(t->cost, &t->cost->ticks[COST_START], cost);
    else
        thread_cost_time(t->cost, COST_SILENCE, cost);
    silence_spend(l, cost);
    errno = saved;
}

void silence_attached(struct thread *t)
{
    int saved = errno;
    if (t->cost == &thread_cost_shared)
        return;
    bool is_off = gp.settings.numbers[SETTING_SILENCE] == SETTING_OFF;
    t->cost->look = (struct thread_look){.credit = (int64_t)silence_ticks_of(CREDIT_NS),
                                         .credit_at = ticks_now(),
                                         .delay = is_off ? NULL : take_file(t->tid)};
    errno = saved;
}

void silence_tick(struct thread *writer)
{
    (void)writer;
    for (unsigned i = 0; i < FILES_MAX; i++) {
        uint32_t tid = atomic_load_explicit(&files[i].tid, memory_order_acquire);
        if (tid && tid != TID_FILLING && !thread_exists(tid))
            silence_close_file(&files[i]);
    }
}

/* Closes the files in the child of a fork: they belong to the parent's threads. */
void silence_reset(void)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (atomic_load_explicit(&files[i].tid, memory_order_acquire))
            silence_close_file(&files[i]);
    atomic_store(&first_count, 0);
}
