/* SPDX-License-Identifier: Apache-2.0 */
#include "host/sampling.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/futex.h"
#include "base/memory_read.h"
#include "base/objects.h"
#include "base/pages.h"
#include "base/proc.h"
#include "base/say.h"
#include "base/ticks.h"
#include "host/sample_child.h"
#include "host/sample_ring.h"
#include "host/sample_signal.h"
#include "python/python_code.h"
#include "record/own_thread.h"
#include "record/start.h"
#include "record/thread.h"
#include "stack/modules.h"
#include "stack/splice.h"
#include "stack/stack.h"
#include "stack/walk.h"

#define SAMPLED_MAX 1024u /* threads at one time */
#define ROOMS       16u   /* handlers running at one time */
#define PULSE_NS    20000000u
/* every so many pulses, checks that timers have their threads and threads their timers */
#define PULSES_OF_CHECK 5u
/* the next pulse is one later for this many threads, since it looks at each */
#define THREADS_OF_PULSE 32u
/* a tick this late says nothing about the code that it interrupts */
#define LATE_NS        200000000u
#define SILENT_PERIODS 50u
#define LOCK_NS        1000000000u
#define NAME_BYTES     16u

/* A thread with a timer. Used by the scanning thread, except `told`. */
struct sampled {
    _Atomic uint32_t tid; /* 0: free */
    int32_t timer;
    uint32_t scan; /* the last scan that found it */
    bool is_named; /* its name was written */
    bool is_silent;
    uint64_t begin_ns; /* its CPU time when it got the timer */
    _Atomic uint32_t
        reported; /* periods that its ticks have covered, or that they should not cover */
};

/* An entry of the ring: a record of a Python place, or a sample. */
struct put_aside {
    uint32_t record_bytes; /* size of the record that follows; 0: it is a sample */
    uint64_t ticks;
    uint32_t tid;
    uint32_t slot;
    uint32_t periods;
    uint32_t flags; /* enum sample_flag */
    uint32_t age;   /* version of the modules that the frames are in */
    uint16_t count;
    bool is_cut;
    uint64_t frames[];
};

/* Where a handler takes a stack: the thread's stack may be small. The previous contents are most
 * often from the same thread. */
struct room {
    _Atomic uint32_t is_taken;
    struct walk walk;
    struct walk_past past;
    struct python_seen seen;
    struct splice splice;
    struct memory_window window; /* cache for reading names and lines */
    struct python_place text;    /* buffer for names */
} __attribute__((aligned(64)));

static struct {
    int number; /* of the signal; 0: sampling is off */
    uint64_t period_ns;
    unsigned depth;
    struct sampled *slots;
    struct room *rooms;
    uint32_t used;  /* number of slots, including free ones */
    uint32_t found; /* the slot last searched for */
    uint32_t scan;
    uint32_t pulse;
    uint64_t due_ns;     /* when the next pulse is due */
    nlink_t links;       /* link count of the folder of threads at the last scan */
    pid_t pid;           /* the process that owns all this */
    struct lock timers;  /* protects `number`, the slots and what scans know */
    struct lock reading; /* protects the ring and `walk` */
    struct walk walk;
} all;

static bool is_slot(union sigval value)
{
    uintptr_t at = (uintptr_t)value.sival_ptr - (uintptr_t)all.slots;
    return at < SAMPLED_MAX * sizeof *all.slots && at % sizeof *all.slots == 0;
}

static struct room *take_room(uint32_t tid)
{
    for (uint32_t i = 0; i < ROOMS; i++) {
        struct room *r = &all.rooms[(tid + i) % ROOMS];
        if (!atomic_exchange_explicit(&r->is_taken, 1, memory_order_acquire))
            return r;
    }
    return NULL;
}

static bool keep_place(const struct record *r)
{
    uint32_t bytes = (uint32_t)record_bytes(r);
    struct put_aside *p = sample_ring_begin((uint32_t)sizeof *p + bytes);
    if (!p)
        return false;
    *p = (struct put_aside){.record_bytes = bytes};
    record_write(r, (uint8_t *)p->frames, bytes);
    sample_ring_end(p, (uint32_t)sizeof *p + bytes);
    return true;
}

/*
 * Reads Python's frames into r->walk. Returns false if they were just changing, and are not known.
 */
static bool take_python(struct room *r)
{
    struct walk *w = &r->walk;
    struct splice *s = &r->splice;
    bool is_cut;
    r->seen.low = r->past.low;
    r->seen.high = r->past.high;
    memory_window_use(&r->window);
    int count = python_frames_interrupted(&r->seen, s->frames, PYTHON_FRAMES_MAX, &is_cut);
    s->count = count > 0 ? (unsigned)count : 0;
    s->keep = keep_place;
    s->text = &r->text;
    w->is_cut |= is_cut;
    splice_frames(NULL, s, w, all.depth);
    memory_window_use(NULL);
    return count >= 0;
}

/*
 * Reads the stack of the interrupted code into r->walk; returns flags that say why there is none.
 */
static uint32_t sampling_take_stack(const ucontext_t *context, struct room *r)
{
    struct walk *w = &r->walk;
    bool has_python = python_is_here(), is_whole = true;
    if (has_python)
        python_frames_ahead(&r->seen);
    walk_interrupted(context, &r->past, w, has_python ? WALK_FRAMES_MAX : all.depth);
    sample_child_look(w);
    if (has_python)
        is_whole = take_python(r);
    w->is_cut |= w->is_short || w->is_signal;
    return is_whole ? 0 : SAMPLE_TORN;
}

static bool put_aside(struct sampled *s, unsigned periods, const ucontext_t *context,
                      struct room *room, uint32_t tid, uint64_t ticks)
{
    struct walk *w = &room->walk;
    uint32_t age = atomic_load(&modules_age);
    uint32_t flags = walk_is_in_kernel(context) ? SAMPLE_IN_KERNEL : 0;
    if (call_thread_is_inside(&this_thread)) {
        w->count = 0; /* reset only here: otherwise the previous walk helps to read ahead */
        flags |= SAMPLE_IN_GPUPROF;
    } else {
        flags |= sampling_take_stack(context, room);
    }
    uint32_t bytes = (uint32_t)(sizeof(struct put_aside) + w->count * sizeof *w->frames);
    struct put_aside *p = sample_ring_begin(bytes);
    if (!p)
        return false;
    *p = (struct put_aside){.ticks = ticks,
                            .tid = tid,
                            .slot = (uint32_t)(s - all.slots),
                            .periods = periods,
                            .flags = flags,
                            .age = age,
                            .count = (uint16_t)w->count,
                            .is_cut = w->is_cut};
    memcpy(p->frames, w->frames, w->count * sizeof *w->frames);
    sample_ring_end(p, bytes);
    return true;
}

extern int getcontext(ucontext_t *context) __attribute__((weak)); /* musl has none */

void sampling_keep_stack(struct kept_stack *k)
{
    ucontext_t context;
    uint32_t age = atomic_load(&modules_age);
    struct room *r = all.number ? take_room(thread_id()) : NULL;
    k->count = 0;
    if (!r)
        return;
    if (getcontext && getcontext(&context) == 0 && sampling_take_stack(&context, r) == 0) {
        uint32_t count = r->walk.count < KEPT_FRAMES_MAX ? r->walk.count : KEPT_FRAMES_MAX;
        *k = (struct kept_stack){.age = age,
                                 .count = (uint16_t)count,
                                 .is_cut = r->walk.is_cut || count < r->walk.count};
        memcpy(k->frames, r->walk.frames, count * sizeof *k->frames);
    }
    atomic_store_explicit(&r->is_taken, 0, memory_order_release);
}

uint32_t sampling_number(struct thread *t, const struct kept_stack *k)
{
    struct room *r = k->count ? take_room(t->tid) : NULL;
    if (!r)
        return 0;
    memcpy(r->walk.frames, k->frames, k->count * sizeof *k->frames);
    r->walk.count = k->count;
    r->walk.is_cut = k->is_cut;
    uint32_t stack = stack_number(t, &r->walk, k->age);
    atomic_store_explicit(&r->is_taken, 0, memory_order_release);
    return stack;
}

/*
 * The slot of the calling thread; no system call is needed if the timer is its own. It is not in
 * the child of a fork, which begins with a copy of `known`, or if a pending signal waited until its
 * timer was reused.
 */
static uint32_t tid_of_tick(const struct sampled *s)
{
    static __thread uint32_t known;
    if (known == 0 || known != atomic_load_explicit(&s->tid, memory_order_relaxed))
        known = thread_id();
    return known;
}

/* Runs in a signal handler, anywhere. */
static void on_tick(union sigval value, unsigned periods, const void *context)
{
    struct sampled *s = value.sival_ptr;
    uint32_t tid = tid_of_tick(s);
    /* it was blocked: it describes the present, not that period */
    bool is_late = periods * all.period_ns > LATE_NS;
    periods = is_late ? 1 : periods;
    atomic_fetch_add_explicit(&s->reported, periods, memory_order_relaxed);
    if (recorded_off() & OFF_CALLS)
        return;
    uint64_t begin = ticks_now();
    struct thread_cost *cost = this_thread.cost ? this_thread.cost : &thread_cost_shared;
    struct room *r = context ? take_room(tid) : NULL;
    bool done = r && put_aside(s, periods, context, r, tid, begin);
    if (r)
        atomic_store_explicit(&r->is_taken, 0, memory_order_release);
    if (!done)
        counter_add(COUNTER_SAMPLES_DROPPED, 1);
    thread_cost_time(cost, COST_SAMPLE, ticks_now() - begin);
}

/* The kernel's id of a thread's CPU clock. */
static clockid_t clock_of(uint32_t tid)
{
    return (clockid_t)(~tid << 3 | 6);
}

static uint64_t cpu_ns(uint32_t tid)
{
    struct timespec t = {0};
    syscall(SYS_clock_gettime, clock_of(tid), &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Starts after the last one found: the kernel lists threads in the order in which they got their
 * slots. */
static struct sampled *sampling_find(uint32_t tid)
{
    for (uint32_t n = 0; n < all.used; n++) {
        all.found = all.found + 1 < all.used ? all.found + 1 : 0;
        if (all.slots[all.found].tid == tid)
            return &all.slots[all.found];
    }
    return NULL;
}

/* Uses the system call: the C library's function may allocate. Returns false if the thread is gone,
 * or the kernel has no space. */
static bool make_timer(struct sampled *s, uint32_t tid)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID,
                             .sigev_signo = all.number,
                             .sigev_value.sival_ptr = s,
                             ._sigev_un._tid = (pid_t)tid};
    const struct timespec period = {.tv_sec = (time_t)(all.period_ns / 1000000000u),
                                    .tv_nsec = (long)(all.period_ns % 1000000000u)};
    const struct itimerspec times = {period, period};
    if (syscall(SYS_timer_create, clock_of(tid), &event, &s->timer) < 0)
        return false;
    syscall(SYS_timer_settime, s->timer, 0, &times, NULL);
    return true;
}

static void arm(uint32_t tid)
{
    struct sampled *s = sampling_find(tid);
    if (s)
        s->scan = all.scan;
    if (s || !(s = all.used < SAMPLED_MAX && !sampling_find(0) ? &all.slots[all.used]
                                                               : sampling_find(0)))
        return;
    s->begin_ns = cpu_ns(tid);
    s->is_named = s->is_silent = false;
    s->scan = all.scan;
    atomic_store(&s->reported, 0);
    if (!make_timer(s, tid)) {
        if (errno != EINVAL)
            note(SAY_SAMPLES, "some threads are not sampled: %s", error_text(errno));
        return;
    }
    s->tid = tid;
    all.used += s == &all.slots[all.used];
}

static void disarm(struct sampled *s)
{
    syscall(SYS_timer_delete, s->timer);
    s->tid = 0;
}

static void disarm_all(void)
{
    for (uint32_t i = 0; i < all.used; i++)
        if (all.slots[i].tid)
            disarm(&all.slots[i]);
}

static bool has_memory(void)
{
    if (!all.slots)
        all.slots = pages_map(SAMPLED_MAX * sizeof *all.slots);
    if (!all.rooms)
        all.rooms = pages_map(ROOMS * sizeof *all.rooms);
    return all.slots && all.rooms && sample_ring_create();
}

void sampling_start(void)
{
    uint64_t rate = gp.settings.numbers[SETTING_SAMPLE];
    if (rate == SETTING_OFF)
        return;
    all.period_ns = 1000000000u / rate;
    all.depth = (unsigned)gp.settings.numbers[SETTING_BACKTRACE_DEPTH];
    if (!has_memory()) {
        note(SAY_SAMPLES, "--sample is off: cannot allocate memory");
        return;
    }
    objects_are_watched(); /* checked once, and not in a handler */
    modules_find_now();
    modules_check(true);
    python_look();
    sample_child_prepare();
    all.pid = getpid();
    all.number = sample_signal_take(on_tick, is_slot, 0);
    if (all.number && this_thread.inside != CALL_FOR_GOOD)
        arm(thread_id());
    if (!all.number)
        note(SAY_SAMPLES, "--sample is off: the program handles every real-time signal itself");
}

void sampling_load(void)
{
    uint64_t rate = start_setting(SETTING_SAMPLE);
    if (rate != SETTING_OFF && start_load_settings())
        sampling_start();
}

/* Does a timer belong to an ended thread? Then it has no time left. */
static bool has_ended(const struct sampled *s)
{
    struct itimerspec left = {0};
    return syscall(SYS_timer_gettime, s->timer, &left) < 0 ||
           (left.it_value.tv_sec == 0 && left.it_value.tv_nsec == 0);
}

static void drop_ended(void)
{
    for (uint32_t i = 0; i < all.used; i++)
        if (all.slots[i].tid && has_ended(&all.slots[i]))
            disarm(&all.slots[i]);
}

static bool visit_thread(int dir, const char *name, void *data)
{
    uint32_t tid = (uint32_t)strtoul(name, NULL, 10);
    (void)dir;
    (void)data;
    if (!own_thread_is(tid))
        arm(tid);
    return true;
}

static void scan(void)
{
    int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir < 0)
        return;
    all.scan++;
    proc_each(dir, visit_thread, NULL);
    close(dir);
    for (uint32_t i = 0; i < all.used; i++)
        if (all.slots[i].tid && all.slots[i].scan != all.scan)
            disarm(&all.slots[i]);
}

/* The link count says how many threads there are, ours included. One of the program's may start as
 * another ends, so all are checked when a check is due. */
static void scan_if_changed(bool is_due)
{
    struct stat folder;
    if (is_due)
        drop_ended();
    if (stat("/proc/self/task", &folder) < 0) {
        note(SAY_SAMPLES, "threads that start from now on are not sampled: /proc/self/task: %s",
             error_text(errno));
        return;
    }
    nlink_t links = folder.st_nlink - atomic_load(&own_thread_count);
    if (links == all.links && !is_due)
        return;
    all.links = links;
    scan();
}

/* The first sample of a thread also has its name. */
static void write_one(struct thread *t, struct sampled *s, struct record *r)
{
    char name[NAME_BYTES], path[48];
    if (!s->is_named && s->tid == r->args[SAMPLE_TID]) {
        snprintf(path, sizeof path, "/proc/self/task/%u/comm", s->tid);
        int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t bytes = file < 0 ? 0 : read(file, name, NAME_BYTES);
        if (file >= 0)
            close(file);
        s->is_named = bytes > 0;
        r->byte_count = bytes > 0 ? (uint32_t)bytes - (name[bytes - 1] == '\n') : 0;
        r->bytes = r->byte_count ? (const uint8_t *)name : NULL;
    }
    thread_append(t, r);
}

/* Records the time of threads that ran without ticks: they block the signal, for ever or for too
 * long. */
static void report_silent(struct thread *me)
{
    for (uint32_t i = 0; i < all.used; i++) {
        struct sampled *s = &all.slots[i];
        uint64_t ran_ns = s->tid ? cpu_ns(s->tid) - s->begin_ns : 0,
                 reported = atomic_load(&s->reported);
        uint64_t periods = ran_ns < 1ull << 62 ? ran_ns / all.period_ns : 0;
        if (periods <= reported + (s->is_silent ? 1 : reported / 4 + SILENT_PERIODS))
            continue;
        counter_add(COUNTER_SAMPLES_SILENT, !s->is_silent);
        s->is_silent = true;
        periods -= reported;
        atomic_fetch_add(&s->reported, (uint32_t)periods);
        write_one(me, s,
                  &(struct record){
                      RECORD_WITH(SAMPLE, [SAMPLE_PERIOD] = all.period_ns, [SAMPLE_TID] = s->tid,
                                  [SAMPLE_FLAGS] = SAMPLE_SILENT, [SAMPLE_STATE] = 'R'),
                      .code = SAMPLE_CPU, .begin = ticks_now(), .weight = (uint32_t)periods});
    }
}

/* Moves all timers to another signal. The lock must be held. */
static void sampling_move(int taken)
{
    all.number = sample_signal_take(on_tick, is_slot, taken);
    for (uint32_t i = 0; i < all.used; i++) {
        struct sampled *s = &all.slots[i];
        if (!s->tid)
            continue;
        syscall(SYS_timer_delete, s->timer);
        if (!all.number || !make_timer(s, s->tid))
            s->tid = 0;
    }
    note(SAY_SAMPLES,
         all.number ? "sampling moved to another signal: the program now uses the one it had"
                    : "sampling stopped: the program now handles every real-time signal itself");
}

void sampling_give_up(int number)
{
    if (!lock_take(&all.timers, LOCK_NS))
        return;
    if (all.number == number)
        sampling_move(number);
    lock_drop(&all.timers);
}

static void write_sample(struct thread *t, const struct put_aside *p)
{
    uint32_t flags = p->flags, stack = 0;
    if (p->count) {
        memcpy(all.walk.frames, p->frames, p->count * sizeof *p->frames);
        all.walk.count = p->count;
        all.walk.is_cut = p->is_cut;
        stack = stack_number(t, &all.walk, p->age);
        if (!stack)
            flags |= SAMPLE_TORN;
    }
    if (flags & SAMPLE_TORN)
        counter_add(COUNTER_SAMPLES_TORN, 1);
    struct record r = {RECORD_WITH(SAMPLE, [SAMPLE_PERIOD] = all.period_ns, [SAMPLE_TID] = p->tid,
                                   [SAMPLE_FLAGS] = flags, [SAMPLE_STATE] = 'R'),
                       .code = SAMPLE_CPU, .begin = p->ticks, .stack_id = stack,
                       .weight = p->periods};
    write_one(t, &all.slots[p->slot], &r);
}

static void sampling_write_all(struct thread *t)
{
    const struct put_aside *p;
    if (!lock_take(&all.reading, LOCK_NS))
        return;
    while ((p = sample_ring_next())) {
        struct record r;
        if (!p->record_bytes)
            write_sample(t, p);
        else if (record_parse((const uint8_t *)p->frames, p->record_bytes, &r) > 0)
            thread_append(t, &r);
        sample_ring_drop();
    }
    lock_drop(&all.reading);
}

uint64_t sampling_pulse(struct thread *me, uint64_t now_ns)
{
    if (!all.number)
        return UINT64_MAX;
    if (now_ns < all.due_ns)
        return all.due_ns;
    all.due_ns = now_ns + PULSE_NS;
    if (lock_take(&all.timers, LOCK_NS)) {
        if (!sample_signal_is_kept()) /* the program used its own system call */
            sampling_move(all.number);
        bool is_due = ++all.pulse >= PULSES_OF_CHECK + all.used / THREADS_OF_PULSE;
        scan_if_changed(is_due);
        if (is_due) {
            all.pulse = 0;
            report_silent(me);
        }
        lock_drop(&all.timers);
    }
    sampling_write_all(me);
    return all.due_ns;
}

void sampling_end(struct thread *me)
{
    if (lock_take(&all.timers, LOCK_NS)) {
        report_silent(me);
        disarm_all();
        lock_drop(&all.timers);
    }
    sampling_write_all(me);
}

void sampling_forget(void)
{
    if (all.pid == getpid()) /* set by sampling_after_fork */
        return;
    if (all.slots)
        memset(all.slots, 0, all.used * sizeof *all.slots);
    for (uint32_t i = 0; all.rooms && i < ROOMS; i++)
        atomic_store(&all.rooms[i].is_taken, 0);
    all.used = all.scan = all.pulse = 0;
    all.due_ns = 0;
    all.links = 0;
    atomic_store(&all.reading.holder, 0);
    atomic_store(&all.timers.holder, 0);
    sample_ring_forget();
}

static void change_mask(int how, int number, uint64_t *before)
{
    uint64_t mask = UINT64_C(1) << (number - 1);
    syscall(SYS_rt_sigprocmask, how, &mask, before, sizeof mask);
}

int sampling_before_fork(void)
{
    int number = all.number;
    uint64_t before = UINT64_MAX;
    if (number)
        change_mask(SIG_BLOCK, number, &before);
    return number && !(before >> (number - 1) & 1) ? number : 0;
}

void sampling_after_fork(bool is_child, bool is_recorded, int blocked)
{
    bool is_sampled = is_child && is_recorded && all.number;
    if (is_child && all.number) {
        sampling_forget();
        all.pid = getpid();
    }
    if (is_sampled) {
        sample_child_begins();
        arm(thread_id());
    }
    if (blocked)
        change_mask(SIG_UNBLOCK, blocked, NULL);
}
