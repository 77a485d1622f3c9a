/* SPDX-License-Identifier: Apache-2.0 */
#include "cost/cost_sums.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/api.h"
#include "base/futex.h"
#include "base/pages.h"
#include "base/ticks.h"
#include "record/own_thread.h"
#include "record/pool.h"
#include "record/state.h"
#include "record/thread.h"
#include "record/thread_cost.h"

/* place 0 is shared by threads without a place of their own */
#define PLACES       (THREAD_COSTS_MAX + 1)
#define TIMED_MIN    4         /* classes timed this often in a window get a mean of their own */
#define WORST_NS_MIN 10000000u /* shares of younger threads are not reported */
#define MILLION      1000000.0

/* What the writer remembers about a thread. */
struct watched {
    int64_t count[COST_COUNT];     /* calls in this window */
    uint64_t unpriced[COST_COUNT]; /* calls of earlier windows whose cost was not known then */
    uint64_t seen_count[COST_COUNT];
    uint64_t seen_timed[COST_COUNT];
    uint64_t seen_ticks[COST_COUNT];
    double window_ns[COST_COUNT]; /* cost in this window */
    double cost_ns;               /* cost since the thread started */
    uint64_t wall_ns;
    uint64_t last_ns; /* end of its last sealed record, in ns of the stream */
    uint64_t seen_cold_timed[COST_COUNT];
    uint64_t seen_cold_ticks[COST_COUNT];
};

/* Sum and number of timed calls. */
struct timings {
    uint64_t timed[COST_COUNT];
    double ns[COST_COUNT];
};

/* A thread's share of the cost. */
struct share {
    uint32_t thread;
    uint64_t wall_ns;
    double cost_ns;
};

/* Used by the writer. */
static struct {
    struct watched *watched;    /* PLACES entries from mmap; NULL: nothing is measured */
    double mean_ns[COST_COUNT]; /* mean cost of one call; below 0: not known yet */
    struct timings warm;
    struct timings cold; /* timings of the first calls of bursts */
    uint64_t count[COST_COUNT];
    double total_ns[COST_COUNT];
    uint64_t begin_ns;  /* start of the recording */
    uint64_t window_ns; /* start of the window */
    uint32_t window;    /* number of the window: 1, 2, ... */
    uint64_t own_ns;
    struct share ended; /* all ended threads together; `thread` is their number */
    struct share worst; /* the largest share among them */
    bool has_quota;     /* a cgroup limits the process to the time of one processor */
} sums;

static struct thread_cost *cost_at(uint32_t index)
{
    return index ? &thread_costs[index - 1] : &thread_cost_shared;
}

/* Returns the thread that owns the place; 0: none. */
static uint32_t owner_at(uint32_t index)
{
    return index && thread_costs ? thread_cost_owner(cost_at(index)) : 0;
}

/* Reads "max 100000" or "50000 100000": quota and period in microseconds. */
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

/* If so, our own threads take their time from the program's threads. */
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
    sums.window = 1;
    sums.has_quota = read_quota();
}

static void count_in(uint32_t index, unsigned class, uint64_t count)
{
    if (!sums.watched)
        return;
    /* the thread has ended and was counted for the last time */
    if (index >= PLACES || !owner_at(index))
        index = 0;
    sums.watched[index].count[class] += (int64_t)count;
}

void cost_sums_sealed(uint32_t index, uint32_t shape_key, uint32_t count)
{
    unsigned type = shape_key >> 24, code = shape_key & 0xffff;
    if (type == RECORD_CALL && code < API_FUNCTION_COUNT)
        count_in(index, api_functions[code].cost, count);
    else if (type == RECORD_LIBRARY_BEGIN || type == RECORD_LIBRARY_END)
        count_in(index, COST_LIBRARY, count);
    else if (type >= RECORD_PUSH && type <= RECORD_STEP && type != RECORD_LABEL)
        count_in(index, COST_RANGE, count);
    else if (type == RECORD_OP_BEGIN || type == RECORD_OP_END)
        count_in(index, COST_OPERATOR, count);
    else if (type == RECORD_TENSOR)
        count_in(index, COST_TENSOR, count);
}

void cost_sums_active(struct chunk_owner *owner)
{
    atomic_store_explicit(&owner->active, sums.window, memory_order_relaxed);
}

void cost_sums_reached(uint32_t index, uint64_t last_ns)
{
    if (sums.watched && index < PLACES && last_ns > sums.watched[index].last_ns)
        sums.watched[index].last_ns = last_ns;
}

void cost_sums_passed(uint32_t index, uint64_t count)
{
    count_in(index, COST_PASSED, count);
}

static double cost_sums_ns_of(uint64_t ticks)
{
    return (double)ticks * (double)gp.header.scale.mult / 4294967296.0;
}

/* Returns by how much the sum has grown since the last look. Never negative: a signal handler's
 * call between the load and the store could make the sum smaller. */
static uint64_t take_more(const _Atomic uint64_t *sum, uint64_t *seen)
{
    uint64_t now = atomic_load_explicit(sum, memory_order_relaxed);
    uint64_t more = now > *seen ? now - *seen : 0;
    *seen += more;
    return more;
}

/* Takes the counts and timings since the last look, and adds the timings to `warm` and `cold`. */
static void take_counts(uint32_t index, struct timings *warm, struct timings *cold)
{
    struct watched *w = &sums.watched[index];
    struct thread_cost *c = cost_at(index);
    for (unsigned i = 0; i < COST_COUNT; i++) {
        uint64_t counted = atomic_load_explicit(&c->count[i], memory_order_relaxed);
        double ns = cost_sums_ns_of(take_more(&c->ticks[i], &w->seen_ticks[i]));
        w->count[i] += (int64_t)(counted - w->seen_count[i]);
        w->seen_count[i] = counted;
        w->window_ns[i] = ns; /* this class counts time directly (EXACT) */
        warm->timed[i] += take_more(&c->timed[i], &w->seen_timed[i]);
        warm->ns[i] += ns;
        cold->timed[i] += take_more(&c->cold_timed[i], &w->seen_cold_timed[i]);
        cold->ns[i] += cost_sums_ns_of(take_more(&c->cold_ticks[i], &w->seen_cold_ticks[i]));
    }
}

static void add_timings(struct timings *to, const struct timings *more)
{
    for (unsigned i = 0; i < COST_COUNT; i++) {
        to->timed[i] += more->timed[i];
        to->ns[i] += more->ns[i];
    }
}

/* Chooses the timings of a class: those of first calls of bursts only if there are no others. */
static const struct timings *timings_of(unsigned class)
{
    return sums.warm.timed[class] ? &sums.warm : &sums.cold;
}

/* Computes the mean cost of each class, from this window if it has enough timings. */
static void set_means(const struct timings *window)
{
    double all_ns = 0;
    uint64_t all = 0;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        const struct timings *t = timings_of(i);
        if (window->timed[i] >= TIMED_MIN)
            sums.mean_ns[i] = window->ns[i] / (double)window->timed[i];
        else if (t->timed[i])
            sums.mean_ns[i] = t->ns[i] / (double)t->timed[i];
        if (i <= COST_QUERY) {
            all += t->timed[i];
            all_ns += t->ns[i];
        }
    }
    /* Classes without timings are assumed to cost as much as the average call. */
    for (unsigned i = 0; i < COST_COUNT && all; i++)
        if (!timings_of(i)->timed[i] && cost_infos[i].place == COST_PLACE_CALLER)
            sums.mean_ns[i] = all_ns / (double)all;
}

/* Returns what the window has cost the thread, without the thread's start. Calls made before
 * anything was timed are added to the thread's sum as soon as their cost is known. */
static double take_costs(struct watched *w)
{
    double cost_ns = 0;
    for (unsigned i = 0; i < COST_COUNT; i++) {
        int64_t count = w->count[i] > 0 ? w->count[i] : 0;
        if (cost_infos[i].place == COST_PLACE_CALLER) {
            bool is_known = sums.mean_ns[i] >= 0;
            double late_ns = is_known ? (double)w->unpriced[i] * sums.mean_ns[i] : 0;
            w->window_ns[i] = is_known ? (double)count * sums.mean_ns[i] : 0;
            w->unpriced[i] = is_known ? 0 : w->unpriced[i] + (uint64_t)count;
            w->cost_ns += late_ns;
            sums.total_ns[i] += late_ns;
        }
        w->count[i] -= count;
        sums.count[i] += (uint64_t)count;
        sums.total_ns[i] += w->window_ns[i];
        cost_ns += i == COST_START ? 0 : w->window_ns[i];
    }
    w->cost_ns += cost_ns;
    return cost_ns;
}

static bool is_larger(const struct share *a, const struct share *b)
{
    return a->wall_ns >= WORST_NS_MIN &&
           a->cost_ns * (double)b->wall_ns > b->cost_ns * (double)a->wall_ns;
}

/* Frees the place: the thread has ended, and all its records are sealed. */
static void forget(uint32_t index)
{
    struct thread_cost *c = cost_at(index);
    const struct watched *w = &sums.watched[index];
    struct share its = {c->number, w->wall_ns, w->cost_ns};
    for (unsigned i = 0; i < COST_COUNT; i++)
        sums.watched[0].unpriced[i] += w->unpriced[i];
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
        atomic_store_explicit(&c->cold_timed[i], 0, memory_order_relaxed);
        atomic_store_explicit(&c->cold_ticks[i], 0, memory_order_relaxed);
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

/* Adds a thread to the window: its time, and its cost by class. `own_ns`: what our own threads took
 * from it. */
static void add_window(struct ladder_window *out, const double *ns, const struct share *its,
                       double own_ns)
{
    uint64_t share = per_million(its->cost_ns + own_ns, its->wall_ns);
    uint64_t calls =
        per_million(ns[COST_LAUNCH] + ns[COST_COPY] + ns[COST_WAIT] + own_ns, its->wall_ns);
    raise_to(&out->share, share);
    if (share <= out->budget)
        return;
    raise_to(&out->saves[LADDER_STACKS], per_million(ns[COST_STACK], its->wall_ns));
    raise_to(&out->saves[LADDER_QUERIES], per_million(ns[COST_QUERY], its->wall_ns));
    raise_to(&out->saves[LADDER_CALLBACKS], per_million(ns[COST_CALLBACK], its->wall_ns));
    raise_to(&out->saves[LADDER_OP_STACKS], per_million(ns[COST_OPERATOR_STACK], its->wall_ns));
    raise_to(&out->saves[LADDER_SHAPES], per_million(ns[COST_OPERATOR], its->wall_ns));
    raise_to(&out->saves[LADDER_OPERATORS], per_million(ns[COST_OPERATOR], its->wall_ns));
    raise_to(&out->saves[LADDER_ARGUMENTS], per_million(ns[COST_LIBRARY], its->wall_ns));
    raise_to(&out->saves[LADDER_LIBRARIES], per_million(ns[COST_LIBRARY], its->wall_ns));
    raise_to(&out->saves[LADDER_TENTH], calls);
    raise_to(&out->saves[LADDER_HUNDREDTH], calls);
}

/* Returns how long the thread took part in the window, in ns. For an ended thread, up to its last
 * record. */
static uint64_t wall_of(uint32_t index, uint64_t now_ns, bool has_ended)
{
    uint64_t zero_ns = gp.header.monotonic_zero_ns;
    uint64_t begin_ns = zero_ns + clock_scale_ns(&gp.header.scale, cost_at(index)->begin);
    uint64_t last_ns = zero_ns + sums.watched[index].last_ns;
    begin_ns = begin_ns > sums.window_ns ? begin_ns : sums.window_ns;
    if (has_ended && last_ns < now_ns)
        now_ns = last_ns;
    return now_ns > begin_ns ? now_ns - begin_ns : 0;
}

/* Counts the threads without sums of their own that were active in this window and still exist. At
 * least 1: threads that have ended ran one after another. Notes the number of one of them. */
static uint32_t count_shared(void)
{
    uint32_t count = 0, allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        const struct chunk_owner *owner = &gp.pool.owners[i];
        if (atomic_load(chunk_state(chunk)) != LIVE_OWNED || atomic_load(&owner->cost) ||
            atomic_load(&owner->active) != sums.window ||
            !thread_exists(chunk_u32(chunk, LIVE_CHUNK_TID)))
            continue;
        thread_cost_shared.number = chunk_u32(chunk, LIVE_CHUNK_THREAD);
        count++;
    }
    return count ? count : 1;
}

/* Adds all threads to the window. Threads that took part for less than half of it are also counted
 * together as one, since they may have run one after another. */
static void add_windows(struct ladder_window *out, uint64_t now_ns, double own_ns)
{
    uint64_t window_ns = now_ns - sums.window_ns;
    struct share brief = {0};
    double brief_ns[COST_COUNT] = {0};
    for (uint32_t i = 0; i < PLACES; i++) {
        struct watched *w = &sums.watched[i];
        uint32_t tid = owner_at(i);
        if (i > 0 && !tid)
            continue;
        bool has_ended = i > 0 && !thread_exists(tid);
        struct share its = {cost_at(i)->number, 0, take_costs(w)};
        if (i > 0)
            its.wall_ns = wall_of(i, now_ns, has_ended);
        else if (its.cost_ns > 0)
            its.wall_ns = window_ns * count_shared();
        w->wall_ns += its.wall_ns;
        if (i > 0 && its.wall_ns < window_ns / 2) {
            brief.wall_ns += its.wall_ns;
            brief.cost_ns += its.cost_ns;
            for (unsigned k = 0; k < COST_COUNT; k++)
                brief_ns[k] += w->window_ns[k];
            its.wall_ns = window_ns / 2; /* a short-lived thread is compared with a longer time */
        }
        if (its.wall_ns)
            add_window(out, w->window_ns, &its, own_ns);
        if (has_ended)
            forget(i);
    }
    if (brief.wall_ns < window_ns / 2)
        brief.wall_ns = window_ns / 2;
    if (brief.wall_ns)
        add_window(out, brief_ns, &brief, own_ns);
}

void cost_sums_look(struct ladder_window *out)
{
    struct timings warm = {0}, cold = {0};
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    uint64_t own_ns = 0;
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
            take_counts(i, &warm, &cold);
    add_timings(&sums.warm, &warm);
    add_timings(&sums.cold, &cold);
    set_means(&warm);
    add_windows(out, now_ns, window_own_ns);
    sums.window_ns = now_ns;
    sums.window++;
}

static void append_class(struct thread *writer, unsigned class)
{
    const struct cost_info *info = &cost_infos[class];
    bool is_own = info->place == COST_PLACE_OWN;
    double total_ns =
        is_own ? (double)own_thread_ns((enum cost_class) class) : sums.total_ns[class];
    const struct timings *t = timings_of(class);
    uint64_t count = info->place == COST_PLACE_EXACT ? t->timed[class] : sums.count[class];
    if (!count && total_ns <= 0)
        return;
    struct record r = {
        RECORD_WITH(
            COST, [COST_ARG_COUNT] = count, [COST_ARG_TIMED] = t->timed[class],
            [COST_ARG_TIMED_NS] = (uint64_t)t->ns[class], [COST_ARG_TOTAL_NS] = (uint64_t)total_ns),
        .code = (uint16_t) class, .begin = ticks_now(), .bytes = (const uint8_t *)info->name,
        .byte_count = (uint32_t)strlen(info->name)};
    thread_append(writer, &r);
}

void cost_sums_append(struct thread *writer)
{
    struct share all = sums.ended, worst = sums.worst;
    all.thread += atomic_load_explicit(&thread_cost_sharer_count, memory_order_relaxed);
    uint64_t budget = gp.settings.numbers[SETTING_OVERHEAD_MAX];
    if (!sums.watched)
        return;
    for (unsigned i = 0; i < COST_COUNT; i++)
        append_class(writer, i);
    for (uint32_t i = 0; i < (thread_costs ? PLACES : 1); i++) {
        const struct watched *w = &sums.watched[i];
        if (!w->wall_ns) /* a free place, or one that a thread is just taking */
            continue;
        struct share its = {cost_at(i)->number, w->wall_ns, w->cost_ns};
        all.thread += i > 0;
        all.wall_ns += its.wall_ns;
        all.cost_ns += its.cost_ns;
        if (is_larger(&its, &worst) || !worst.wall_ns)
            worst = its;
    }
    struct record r = {
        RECORD_WITH(
            COST_SUM, [COST_SUM_THREADS] = all.thread, [COST_SUM_WALL_NS] = all.wall_ns,
            [COST_SUM_COST_NS] = (uint64_t)all.cost_ns, [COST_SUM_WORST_THREAD] = worst.thread,
            [COST_SUM_WORST_WALL_NS] = worst.wall_ns,
            [COST_SUM_WORST_COST_NS] = (uint64_t)worst.cost_ns, [COST_SUM_OWN_NS] = sums.own_ns,
            [COST_SUM_SPAN_NS] = sums.window_ns - sums.begin_ns,
            [COST_SUM_IS_SHARED] = is_one_processor(),
            [COST_SUM_BUDGET] = budget == SETTING_OFF ? 0 : budget),
        .begin = ticks_now()};
    thread_append(writer, &r);
}
