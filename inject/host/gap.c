/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gap.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/futex.h"
#include "base/hash.h"
#include "base/memory_read.h"
#include "base/pages.h"
#include "base/say.h"
#include "base/ticks.h"
#include "host/looked.h"
#include "python/python.h"
#include "record/thread.h"
#include "stack/stack.h"
#include "store/meta.h"

#define GAP_NS 1000000u /* a gap is this long without a call, as in --silence */
/* mean time between two looks; it differs from usual rhythms of programs */
#define LOOK_NS 5500000u
#define REST_NS 50000000u /* the same when all threads have slept for RESTS looks */
#define RESTS   2000u
/* states that last are recorded this often, so that a kill loses no more */
#define REPORTED_NS 100000000u
/* how often a thread without a known Python state is searched for one */
#define STATE_NS 1000000000u
#define BUSY_NS  1000000u /* a thread that waits for the device this long keeps it busy */

#define FAULTS_TRIED 16u
#define FAULT_TURNS  4u

/*
 * Looks need credit. It starts with CREDIT_NS, grows by 1/550 of the time up to that, and is
 * charged the CPU time of each look: at most 0.2 %, with the cost of writing what was found. Stacks
 * seen for the first time take far longer, but occur once: of the first FIRSTS_MAX slow looks, only
 * USUAL_NS each are charged.
 */
#define TRIES_MAX  3
#define LOOKS_PART 550
#define CREDIT_NS  4000000
#define USUAL_NS   50000
#define FIRSTS_MAX 64
/* at most this much is charged for waking up, since other work uses the thread, too */
#define WAKE_NS 30000

/* Result of a look. */
struct found {
    struct looked_state state;
    uint32_t stack;
    uint32_t holder;
    uint32_t holder_stack;
    bool is_torn; /* the thread ran on while its frames were read */
};

/* A thread at the last look. */
struct gap {
    uint64_t ended;    /* end of its last call; if it differs, the thread has made a call since */
    uint64_t seen;     /* ticks: the last look, or when it was last outside a gap */
    uint64_t state;    /* address of its Python thread state; 0: not found */
    uint64_t asked_at; /* ticks: when that was last searched for */
    struct looked_counts counts;
    bool has_counts; /* the counts belong to this gap */
    struct found found;
    /* What is not recorded yet: `weight` looks over `ticks` in all, the last at `seen`. */
    uint32_t weight;
    uint64_t ticks;
    struct looked_counts before; /* the counts at its begin */
};

/* Used only by the thread of host_thread.h. */
struct gaps {
    struct gap gaps[LOOKED_MAX];
    struct looked_calls calls[LOOKED_MAX];
    struct memory_window window; /* caches the Python memory read in one look */
    unsigned turn;               /* the next thread to look at */
    unsigned doubted;            /* the next thread to check for existence, if it makes no calls */
    int64_t credit_ns;
    uint64_t spent_ns;  /* CPU time of this thread at the end of the last look */
    uint64_t earned_ns; /* CLOCK_MONOTONIC time up to which credit was added */
    uint64_t due_ns;
    unsigned slow_count;
    unsigned rest_count;
    uint64_t random;
};

static struct gaps *all;          /* NULL: --gaps is off */
static _Atomic uint64_t fault_ns; /* by that thread: what a page fault takes; 0: not measured */

bool gap_is_wanted(void)
{
    uint64_t gaps = gp.settings.numbers[SETTING_GAPS];
    return gaps == GAPS_ON ||
           (gaps == GAPS_AUTO && gp.settings.numbers[SETTING_SAMPLE] != SETTING_OFF);
}

static uint64_t gap_ticks_of(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << CLOCK_SCALE_SHIFT) / gp.header.scale.mult);
}

static uint64_t gap_ns_of(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * gp.header.scale.mult) >> CLOCK_SCALE_SHIFT);
}

/* Appends what was found and is not told yet. */
static void gap_report(struct thread *me, const struct looked *l, struct gap *g)
{
    const struct found *f = &g->found;
    if (!g->weight)
        return;
    struct record r = {
        RECORD_WITH(SAMPLE, [SAMPLE_PERIOD] = gap_ns_of(g->ticks) / g->weight,
                    [SAMPLE_TID] = atomic_load(&l->tid),
                    [SAMPLE_FLAGS] = (f->state.is_in_call ? SAMPLE_IN_KERNEL : 0) |
                                     (f->is_torn ? SAMPLE_TORN : 0),
                    [SAMPLE_STATE] = (uint8_t)f->state.state,
                    [SAMPLE_SYSCALL] = f->state.is_in_call ? f->state.call + 1ull : 0,
                    [SAMPLE_HOLDER] = f->holder, [SAMPLE_HOLDER_STACK] = f->holder_stack,
                    [SAMPLE_RAN] = g->counts.ran_ns - g->before.ran_ns,
                    [SAMPLE_DELAY] = g->counts.delay_ns - g->before.delay_ns,
                    [SAMPLE_FAULTS] = g->counts.faults - g->before.faults,
                    [SAMPLE_MAJOR_FAULTS] = g->counts.major_faults - g->before.major_faults),
        .code = SAMPLE_GAP, .stack_id = f->stack, .weight = g->weight, .begin = g->seen};
    thread_append(me, &r);
    g->weight = 0;
    g->ticks = 0;
    g->before = g->counts;
}

/* ---- one look -------------------------------------------------------------------------------- */

/* A thread that sleeps, whose frames are being read. */
struct sleeper {
    struct looked *looked;
    const struct looked_counts *counts; /* from before */
};

/* Has it slept all the while? */
static bool has_slept(void *context)
{
    const struct sleeper *s = context;
    struct looked_counts now;
    return looked_read_counts(s->looked, &now) && now.slices == s->counts->slices;
}

/* The interpreter's state of the thread. */
static uint64_t find_state(const struct looked *l, struct gap *g, uint64_t now)
{
    uint32_t tid = atomic_load(&l->tid);
    if (!python_is_here())
        return 0;
    if (python_is_thread(g->state, tid))
        return g->state;
    g->state = 0;
    if (!g->asked_at || now - g->asked_at >= gap_ticks_of(STATE_NS)) {
        g->asked_at = now;
        python_find_threads(&tid, 1, &g->state);
    }
    return g->state;
}

/* Of one that runs. Its frames may change all the while. */
static uint32_t take_running(struct thread *me, uint64_t state, bool *is_torn)
{
    uint32_t stack = 0;
    for (unsigned tries = 0; !stack && tries < TRIES_MAX; tries++)
        stack = stack_take_python_running(me, state, is_torn);
    return stack;
}

/* Its frames, and if it waits for the interpreter's lock, those of the thread that has it. */
static void look_at_python(struct thread *me, struct looked *l, const struct looked_counts *counts,
                           uint64_t state, struct found *f)
{
    struct sleeper sleeper = {l, counts};
    struct python_gil gil;
    uint32_t tid = atomic_load(&l->tid);
    bool is_torn;
    if (f->state.state != 'R' && counts->slices)
        f->stack = stack_take_python_of(me, state, has_slept, &sleeper);
    else
        f->stack = take_running(me, state, &f->is_torn);
    if (!f->state.is_in_call || f->state.call != SYS_futex || !python_gil_look(state, &gil) ||
        f->state.first_argument - gil.place.low >= gil.place.high - gil.place.low ||
        gil.holder_tid == tid)
        return;
    f->holder = gil.holder_tid;
    f->holder_stack = gil.holder ? take_running(me, gil.holder, &is_torn) : 0;
}

static bool gap_is_same(const struct found *a, const struct found *b)
{
    return a->state.state == b->state.state && a->state.is_in_call == b->state.is_in_call &&
           a->state.call == b->state.call && a->stack == b->stack && a->holder == b->holder &&
           a->holder_stack == b->holder_stack;
}

static void count_look(struct thread *me, const struct looked *l, struct gap *g, uint64_t now)
{
    g->weight++;
    g->ticks += now - g->seen;
    g->seen = now;
    if (g->ticks >= gap_ticks_of(REPORTED_NS))
        gap_report(me, l, g);
}

/* It was asleep when it was looked at last, and has not run since. */
static bool sleeps_on(struct looked *l, const struct gap *g)
{
    struct looked_counts now;
    return g->has_counts && g->found.state.state != 'R' && !g->found.holder && g->counts.slices &&
           looked_read_counts(l, &now) && now.slices == g->counts.slices;
}

static void gap_look(struct thread *me, struct looked *l, struct gap *g, uint64_t now)
{
    struct found f = {0};
    struct looked_counts counts;
    if (!looked_read_state(l, &f.state, &counts)) {
        if (!thread_exists(atomic_load(&l->tid)))
            looked_leave(l);
        return;
    }
    uint64_t state = find_state(l, g, now);
    if (state)
        look_at_python(me, l, &counts, state, &f);
    if (!gap_is_same(&f, &g->found))
        gap_report(me, l, g);
    if (!g->has_counts)
        g->before = counts;
    g->counts = counts;
    g->has_counts = true;
    g->found = f;
    count_look(me, l, g, now);
}

/* ---- all threads ----------------------------------------------------------------------------- */

/* Does one of them wait for the device, which then has something to do? */
static bool device_is_busy(unsigned count, uint64_t now)
{
    for (unsigned i = 0; i < count; i++)
        if (all->calls[i].busy_begin &&
            (int64_t)(now - all->calls[i].busy_begin) >= (int64_t)gap_ticks_of(BUSY_NS))
            return true;
    return false;
}

/* Is the thread in a gap, and to be looked at again? One that still sleeps as before needs no
 * further look. *rests: nothing has changed since the last one. */
static bool is_in_gap(struct thread *me, unsigned i, bool is_busy, uint64_t now, bool *rests)
{
    struct looked *l = looked_at(i);
    struct gap *g = &all->gaps[i];
    const struct looked_calls *c = &all->calls[i];
    bool was_there = c->ended == g->ended;
    *rests = true;
    if (!l || !c->ended) {
        *g = (struct gap){0};
        if (l && i == all->doubted && !thread_exists(atomic_load(&l->tid)))
            looked_leave(l);
        return false;
    }
    if (!g->seen)
        g->seen = c->ended;
    if (!was_there) {
        gap_report(me, l, g);
        g->ended = c->ended;
        g->has_counts = false;
    }
    *rests = was_there && c->is_in_call;
    if (c->is_in_call || is_busy || (int64_t)(now - c->ended) < (int64_t)gap_ticks_of(GAP_NS)) {
        gap_report(me, l, g);
        g->has_counts = false;
        g->seen = now;
        return false;
    }
    *rests = sleeps_on(l, g);
    if (*rests)
        count_look(me, l, g, now);
    return !*rests;
}

/* Looks at one thread at most, in turn, which bounds the number of looks. Returns false if nothing
 * changes. */
static bool look_at_all(struct thread *me)
{
    unsigned count = looked_read_calls(all->calls), next = LOOKED_MAX;
    uint64_t now = ticks_now(); /* later than the times that the threads report */
    bool is_busy = device_is_busy(count, now), has_changed = false;
    all->doubted = count ? (all->doubted + 1) % count : 0;
    for (unsigned n = 0; n < count; n++) {
        bool rests;
        unsigned i = (all->turn + n) % count;
        if (is_in_gap(me, i, is_busy, now, &rests) && next == LOOKED_MAX)
            next = i;
        has_changed |= !rests;
    }
    if (next != LOOKED_MAX) {
        all->turn = next + 1;
        gap_look(me, looked_at(next), &all->gaps[next], now);
    }
    return has_changed;
}

static void earn(uint64_t now_ns)
{
    int64_t earned = all->earned_ns ? (int64_t)((now_ns - all->earned_ns) / LOOKS_PART) : CREDIT_NS;
    all->credit_ns = earned >= CREDIT_NS - all->credit_ns ? CREDIT_NS : all->credit_ns + earned;
    all->earned_ns = now_ns;
}

/* Charges a look. `apart_ns`: time since the previous look, for sleeping and waking up. */
static void gap_spend(uint64_t ns, uint64_t apart_ns)
{
    if (ns > USUAL_NS && all->slow_count < FIRSTS_MAX) {
        all->slow_count++;
        ns = USUAL_NS;
    }
    all->credit_ns -= (int64_t)(ns + apart_ns);
}

/* Returns when the next look is due. */
static uint64_t rest_ns(void)
{
    all->random = hash_mix(all->random, 1);
    uint64_t about = all->rest_count > RESTS ? REST_NS : LOOK_NS;
    return about * 3 / 4 + (all->random >> 32) * about / 2 / UINT32_MAX;
}

/* Measures the CPU time of a fault on an untouched page: the best of FAULTS_TRIED. */
static void measure_faults(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t best_ns = UINT64_MAX;
    volatile uint8_t *memory = pages_map(FAULT_TURNS * FAULTS_TRIED * page);
    for (unsigned i = 0; memory && i < FAULT_TURNS; i++) {
        uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        for (unsigned k = 0; k < FAULTS_TRIED; k++)
            memory[(i * FAULTS_TRIED + k) * page] = 1;
        uint64_t ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        best_ns = ns < best_ns ? ns : best_ns;
    }
    if (memory)
        munmap((void *)memory, FAULT_TURNS * FAULTS_TRIED * page);
    atomic_store(&fault_ns, memory ? best_ns / FAULTS_TRIED : 0);
}

void gap_describe(struct thread *writer, bool is_last)
{
    static uint64_t reported;
    uint64_t ns = atomic_load(&fault_ns);
    char text[24];
    (void)is_last;
    if (ns == reported)
        return;
    reported = ns;
    snprintf(text, sizeof text, "%llu", (unsigned long long)ns);
    meta_append_text(writer, "page_fault_ns", text);
}

/* Is all CPU time of the thread spent on looks? Reading its clock takes half a microsecond. */
static bool is_alone(void)
{
    return gp.settings.numbers[SETTING_SAMPLE] == SETTING_OFF;
}

uint64_t gap_pulse(struct thread *me, uint64_t now_ns)
{
    if (!all || !gap_is_wanted())
        return UINT64_MAX;
    if (!atomic_load(&fault_ns))
        measure_faults();
    if (now_ns < all->due_ns)
        return all->due_ns;
    earn(now_ns);
    if (all->credit_ns > 0) {
        uint64_t begin_ns = is_alone() ? all->spent_ns : clock_ns(CLOCK_THREAD_CPUTIME_ID);
        uint64_t apart_ns = begin_ns - all->spent_ns;
        memory_window_use(&all->window);
        all->rest_count = look_at_all(me) ? 0 : all->rest_count + 1;
        memory_window_use(NULL);
        all->spent_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
        gap_spend(all->spent_ns - begin_ns, apart_ns < WAKE_NS ? apart_ns : WAKE_NS);
    }
    uint64_t rest = rest_ns(), wanted = all->credit_ns > 0 ? 0 : (uint64_t)-all->credit_ns + 1;
    all->due_ns = now_ns + (wanted * LOOKS_PART > rest ? wanted * LOOKS_PART : rest);
    return all->due_ns;
}

void gap_end(struct thread *me)
{
    for (unsigned i = 0; all && i < LOOKED_MAX; i++)
        if (looked_at(i))
            gap_report(me, looked_at(i), &all->gaps[i]);
}

void gap_start(void)
{
    if (!gap_is_wanted() || all)
        return;
    if (!looked_start() || !(all = pages_map(sizeof *all)))
        note(SAY_HOST, "--gaps is off: cannot allocate memory: %s", error_text(errno));
}

void gap_attached(struct thread *t)
{
    if (all && gap_is_wanted())
        looked_add(t);
}

void gap_forget(void)
{
    if (!all)
        return;
    looked_forget();
    memset(all, 0, sizeof *all);
}
