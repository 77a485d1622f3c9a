/* SPDX-License-Identifier: Apache-2.0 */
#include "cost_sums.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api.h"
#include "futex.h"
#include "own_thread.h"
#include "pages.h"
#include "state.h"
#include "thread.h"
#include "thread_cost.h"
#include "ticks.h"

#define PLACES       (THREAD_COSTS_MAX + 1) /* 0: the shared one */
#define TIMED_MIN    4         /* timed in a window, so that it has a mean of its own */
#define WORST_NS_MIN 10000000u /* a thread younger than that has no share worth naming */
#define MILLION      1000000.0

/* What the writer remembers of a thread. */
struct watched {
    int64_t count[COST_COUNT]; /* in this window */
    uint64_t seen_count[COST_COUNT];
    uint64_t seen_timed[COST_COUNT];
    uint64_t seen_ticks[COST_COUNT];
    double window_ns[COST_COUNT]; /* its cost */
    double cost_ns;               /* since the thread began */
    uint64_t wall_ns;
};

/* A thread's share. */
struct share {
    uint32_t thread;
    uint64_t wall_ns;
    double cost_ns;
};

static struct {
    struct watched *watched;    /* PLACES, mmap'ed; NULL: nothing is measured */
    double mean_ns[COST_COUNT]; /* of one; below 0: not known yet */
    uint64_t count[COST_COUNT];
    uint64_t timed[COST_COUNT];
    double timed_ns[COST_COUNT];
    double total_ns[COST_COUNT];
    uint64_t begin_ns;  /* of the recording */
    uint64_t window_ns; /* when the window began */
    uint64_t own_ns;
    struct share ended; /* all threads that have ended; `thread` is how many */
    struct share worst; /* of those */
    bool has_quota;     /* the process may take one processor's time at most */
} sums;

static struct thread_cost *cost_at(uint32_t index)
{
    return index ? &thread_costs[index - 1] : &thread_cost_shared;
}

/* Its thread; 0: it has none. */
static uint32_t owner_at(uint32_t index)
{
    return index && thread_costs ? thread_cost_owner(cost_at(index)) : 0;
}

/* "max 100000" or "50000 100000": time, in how much time. */
static bool read_quota(void)
{
    char text[64] = "";
    unsigned long long quota = 0, period = 0;
    int fd = open("/sys/fs/cgroup/cpu.max", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    return n > 0 && sscanf(text, "%llu %llu", &quota, &period) == 2 && quota <= period;
}

/* Then what our own threads take is taken from the program's. */
static bool is_one_processor(void)
{
    cpu_set_t set;
    return sums.has_quota || (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) == 1);
}

void cost_sums_start(void)
{
    struct watched *watched = sums.watched;
    memset(&sums, 0, sizeof sums);
    if (watched)
        memset(watched, 0, PLACES * sizeof *watched);
    else
        watched = pages_map(PLACES * sizeof *watched);
    sums.watched = watched;
    for (unsigned i = 0; i < COST_COUNT; i++)
        sums.mean_ns[i] = -1;
    sums.begin_ns = sums.window_ns = clock_ns(CLOCK_MONOTONIC);
    sums.has_quota = read_quota();
}

static void count_in(uint32_t index, unsigned class, uint64_t count)
{
    if (!sums.watched)
        return;
    if (index >= PLACES || !owner_at(index)) /* it has ended, and was looked at for the last time */
        index = 0;
    sums.watched[index].count[class] += (int64_t)count;
}

void cost_sums_sealed(uint32_t index, uint32_t shape_key, uint32_t count)
{
    unsigned type = shape_key >> 24, code = shape_key & 0xffff;
    if (type == RECORD_CALL && code < API_FUNCTION_COUNT)
        count_in(index, cost_classes[code], count);
    else if (type >= RECORD_PUSH && type <= RECORD_STEP && type != RECORD_LABEL)
        count_in(index, COST_RANGE, count);
}

void cost_sums_passed(uint32_t index, uint64_t count)
{
    count_in(index, COST_PASSED, count);
}

static double ns_of(uint64_t ticks)
{
    return (double)ticks * (double)gp.header.scale.mult / 4294967296.0;
}

/* Takes what the thread has counted and timed since the last look; adds what it has timed to
 * `timed` and `ticks`. */
static void take_counts(uint32_t index, uint64_t *timed, uint64_t *ticks)
{
    struct watched *w = &sums.watched[index];
    struct thread_cost *c = cost_at(index);
    for (unsigned i = 0; i < COST_COUNT; i++) {
        uint64_t counted = atomic_load_explicit(&c->count[i], memory_order_relaxed);
        uint64_t its_timed = atomic_load_explicit(&c->timed[i], memory_order_relaxed);
        uint64_t its_ticks = atomic_load_explicit(&c->ticks[i], memory_order_relaxed);
        w->count[i] += (int64_t)(counted - w->seen_count[i]);
        timed[i] += its_timed - w->seen_timed[i];
        ticks[i] += its_ticks - w->seen_ticks[i];
        w->window_ns[i] = ns_of(its_ticks - w->seen_ticks[i]); /* what is EXACT */
        w->seen_count[i] = counted;
        w->seen_timed[i] = its_timed;
        w->seen_ticks[i] = its_ticks;
    }
}

/* What one of each class costs, from this window where it has timed enough of them. */
static void set_means(const uint64_t *timed, const uint64_t *ticks)
{
    double all_ns = 0;
    uint64_t all = 0;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        sums.timed[i] += timed[i];
        sums.timed_ns[i] += ns_of(ticks[i]);
        if (timed[i] >= TIMED_MIN)
            sums.mean_ns[i] = ns_of(ticks[i]) / (double)timed[i];
        else if (sums.timed[i])
            sums.mean_ns[i] = sums.timed_ns[i] / (double)sums.timed[i];
        if (i < COST_QUERY) {
            all += sums.timed[i];
            all_ns += sums.timed_ns[i];
        }
    }
    /* A class of which none was timed yet is as dear as the calls are. */
    for (unsigned i = 0; i < COST_COUNT && all; i++)
        if (sums.mean_ns[i] < 0 && cost_infos[i].place == COST_PLACE_CALLER)
            sums.mean_ns[i] = all_ns / (double)all;
}

/* What the window has cost the thread, its start left out. */
static double take_costs(struct watched *w)
{
    double cost_ns = 0;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        if (cost_infos[i].place == COST_PLACE_CALLER) {
            int64_t count = w->count[i] > 0 ? w->count[i] : 0;
            w->window_ns[i] = sums.mean_ns[i] > 0 ? (double)count * sums.mean_ns[i] : 0;
            w->count[i] -= count;
            sums.count[i] += (uint64_t)count;
        } else {
            sums.count[i] += (uint64_t)w->count[i];
            w->count[i] = 0;
        }
        sums.total_ns[i] += w->window_ns[i];
        cost_ns += i == COST_START ? 0 : w->window_ns[i];
    }
    return cost_ns;
}

static bool is_larger(const struct share *a, const struct share *b)
{
    return a->wall_ns >= WORST_NS_MIN &&
           a->cost_ns * (double)b->wall_ns > b->cost_ns * (double)a->wall_ns;
}

/* The thread has ended, and all that it recorded is sealed. */
static void forget(uint32_t index)
{
    struct thread_cost *c = cost_at(index);
    const struct watched *w = &sums.watched[index];
    struct share its = {c->number, w->wall_ns, w->cost_ns};
    sums.ended.thread++;
    sums.ended.wall_ns += its.wall_ns;
    sums.ended.cost_ns += its.cost_ns;
    if (is_larger(&its, &sums.worst) || !sums.worst.wall_ns)
        sums.worst = its;
    memset(&sums.watched[index], 0, sizeof *sums.watched);
    for (unsigned i = 0; i < COST_COUNT; i++) {
        atomic_store_explicit(&c->count[i], 0, memory_order_relaxed);
        atomic_store_explicit(&c->timed[i], 0, memory_order_relaxed);
        atomic_store_explicit(&c->ticks[i], 0, memory_order_relaxed);
    }
    atomic_store_explicit(&c->tid, 0, memory_order_release);
}

static uint64_t per_million(double part_ns, uint64_t wall_ns)
{
    double share = wall_ns ? MILLION * part_ns / (double)wall_ns : 0;
    return share < MILLION ? (uint64_t)share : (uint64_t)MILLION;
}

static void raise_to(uint64_t *value, uint64_t other)
{
    *value = other > *value ? other : *value;
}

/* A thread's part of the window. `own_ns`: what our threads took from it. */
static void add_window(struct ladder_window *out, const struct watched *w, const struct share *its,
                       double own_ns)
{
    const double *ns = w->window_ns;
    uint64_t share = per_million(its->cost_ns + own_ns, its->wall_ns);
    uint64_t calls =
        per_million(ns[COST_LAUNCH] + ns[COST_COPY] + ns[COST_WAIT] + own_ns, its->wall_ns);
    raise_to(&out->share, share);
    if (share <= out->budget)
        return;
    raise_to(&out->saves[LADDER_STACKS], per_million(ns[COST_STACK], its->wall_ns));
    raise_to(&out->saves[LADDER_QUERIES], per_million(ns[COST_QUERY], its->wall_ns));
    raise_to(&out->saves[LADDER_CALLBACKS], per_million(ns[COST_CALLBACK], its->wall_ns));
    raise_to(&out->saves[LADDER_TENTH], calls);
    raise_to(&out->saves[LADDER_HUNDREDTH], calls);
}

/* The thread's part of the window: when it began, and the window, in ns of CLOCK_MONOTONIC. */
static uint64_t wall_of(uint32_t index, uint64_t now_ns)
{
    uint64_t begin_ns =
        gp.header.monotonic_zero_ns + clock_scale_ns(&gp.header.scale, cost_at(index)->begin);
    begin_ns = begin_ns > sums.window_ns ? begin_ns : sums.window_ns;
    return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

void cost_sums_look(struct ladder_window *out)
{
    uint64_t timed[COST_COUNT] = {0}, ticks[COST_COUNT] = {0};
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t own_ns = 0;
    uint64_t half_ns = (now_ns - sums.window_ns) / 2;
    out->share = 0;
    memset(out->saves, 0, sizeof out->saves);
    if (!sums.watched)
        return;
    for (unsigned i = 0; i < COST_COUNT; i++)
        own_ns += cost_infos[i].place == COST_PLACE_OWN ? own_thread_ns((enum cost_class)i) : 0;
    double window_own_ns = is_one_processor() ? (double)(own_ns - sums.own_ns) : 0;
    sums.own_ns = own_ns;
    for (uint32_t i = 0; i < PLACES; i++)
        if (i == 0 || owner_at(i))
            take_counts(i, timed, ticks);
    set_means(timed, ticks);
    for (uint32_t i = 0; i < PLACES; i++) {
        struct watched *w = &sums.watched[i];
        uint32_t tid = owner_at(i);
        if (i > 0 && !tid)
            continue;
        struct share its = {cost_at(i)->number, 0, take_costs(w)};
        w->cost_ns += its.cost_ns;
        if (i == 0) /* threads without sums of their own: nobody knows since when */
            continue;
        its.wall_ns = wall_of(i, now_ns);
        w->wall_ns += its.wall_ns;
        if (its.wall_ns < half_ns) /* a thread of a moment is compared with more than that */
            its.wall_ns = half_ns;
        if (its.wall_ns)
            add_window(out, w, &its, window_own_ns);
        if (!thread_exists(tid))
            forget(i);
    }
    sums.window_ns = now_ns;
}

static void append_class(struct thread *writer, unsigned class)
{
    const struct cost_info *info = &cost_infos[class];
    bool is_own = info->place == COST_PLACE_OWN;
    double total_ns =
        is_own ? (double)own_thread_ns((enum cost_class) class) : sums.total_ns[class];
    uint64_t count = info->place == COST_PLACE_EXACT ? sums.timed[class] : sums.count[class];
    if (!count && total_ns <= 0)
        return;
    struct record r = {
        .type = RECORD_COST,
        .code = (uint16_t) class,
        .begin = ticks_now(),
        .arg_count = 4,
        .args = {count, sums.timed[class], (uint64_t)sums.timed_ns[class], (uint64_t)total_ns},
        .bytes = (const uint8_t *)info->name,
        .byte_count = (uint32_t)strlen(info->name)};
    thread_append(writer, &r);
}

void cost_sums_append(struct thread *writer)
{
    struct share all = sums.ended, worst = sums.worst;
    uint64_t budget = gp.settings.numbers[SETTING_OVERHEAD_MAX];
    if (!sums.watched)
        return;
    for (unsigned i = 0; i < COST_COUNT; i++)
        append_class(writer, i);
    for (uint32_t i = 1; thread_costs && i < PLACES; i++) {
        struct share its = {cost_at(i)->number, sums.watched[i].wall_ns, sums.watched[i].cost_ns};
        if (!its.wall_ns)
            continue;
        all.thread++;
        all.wall_ns += its.wall_ns;
        all.cost_ns += its.cost_ns;
        if (is_larger(&its, &worst) || !worst.wall_ns)
            worst = its;
    }
    all.cost_ns += sums.watched[0].cost_ns;
    struct record r = {.type = RECORD_COST_SUM,
                       .begin = ticks_now(),
                       .arg_count = 10,
                       .args = {all.thread, all.wall_ns, (uint64_t)all.cost_ns, worst.thread,
                                worst.wall_ns, (uint64_t)worst.cost_ns, sums.own_ns,
                                sums.window_ns - sums.begin_ns, is_one_processor(),
                                budget == SETTING_OFF ? 0 : budget}};
    thread_append(writer, &r);
}
