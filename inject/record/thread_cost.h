/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpuprof has cost a thread of the program, by cost class (formats/api/costs.def). A thread
 * adds to its own; the writer reads all (cost_sums.c). Calls on the short way are never timed
 * there: now and then the writer asks all threads to take the long way for their next
 * THREAD_COST_BURST calls, where the same steps are done between reads of the clock.
 */
#ifndef GPUPROF_INJECT_THREAD_COST_H
#define GPUPROF_INJECT_THREAD_COST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "api/cost.h"

#define THREAD_COSTS_MAX  1024 /* threads at a time with sums of their own; the others share one */
#define THREAD_COST_BURST 32
#define THREAD_COST_COLD  8 /* the first of a burst: they count only where there are no others */

/* How a thread was looked at last, by itself alone: silence.c. Ticks and ns. */
struct thread_look {
    int64_t credit;
    uint64_t credit_at;
    uint64_t read_ticks; /* 0 = what follows is not known */
    uint64_t read_cpu_ns;
    uint64_t read_delay_ns;   /* and one; 0 = not known */
    struct delay_file *delay; /* NULL: none */
};

struct thread_cost {
    _Atomic uint32_t tid;    /* 0 = free */
    uint32_t number;         /* of the thread */
    uint64_t begin;          /* ticks: when it began to take part */
    struct thread_look look; /* not of the shared one */
    /* Counted by the thread itself: NESTED, CALLBACK and what is EXACT. */
    _Atomic uint64_t count[COST_COUNT];
    _Atomic uint64_t timed[COST_COUNT];
    _Atomic uint64_t ticks[COST_COUNT];
    /* The same of the first calls of bursts, where code comes into the cache first. */
    _Atomic uint64_t cold_timed[COST_COUNT];
    _Atomic uint64_t cold_ticks[COST_COUNT];
};

extern struct thread_cost *thread_costs; /* THREAD_COSTS_MAX; NULL before the first recording */
extern struct thread_cost thread_cost_shared;
extern _Atomic uint32_t thread_cost_sharer_count; /* threads of the program's that ever had it */

/* Once in each recording, before any thread takes part. Without memory all share one. */
void thread_costs_start(void);

/* For a thread that begins to take part. Never NULL. `is_own`: a thread of ours has the shared one.
 */
struct thread_cost *thread_cost_take(uint32_t number, uint32_t tid, bool is_own);

/* The thread whose it is; 0: nobody's, or not ready yet. For the writer. */
uint32_t thread_cost_owner(const struct thread_cost *c);

#define THREAD_COST_OWN UINT32_MAX /* in place of that number: a thread of ours */

/* Its number for the header of a chunk: 0 is the shared one. */
static inline uint32_t thread_cost_index(const struct thread_cost *c)
{
    return c == &thread_cost_shared ? 0 : (uint32_t)(c - thread_costs) + 1;
}

/* `sum` is one of c's. */
static inline void thread_cost_raise(struct thread_cost *c, _Atomic uint64_t *sum, uint64_t amount)
{
    if (c == &thread_cost_shared) {
        atomic_fetch_add_explicit(sum, amount, memory_order_relaxed);
        return;
    }
    uint64_t now = atomic_load_explicit(sum, memory_order_relaxed);
    atomic_store_explicit(sum, now + amount, memory_order_relaxed);
}

static inline void thread_cost_count(struct thread_cost *c, enum cost_class class)
{
    thread_cost_raise(c, &c->count[class], 1);
}

static inline void thread_cost_time(struct thread_cost *c, enum cost_class class, uint64_t ticks)
{
    thread_cost_raise(c, &c->timed[class], 1);
    thread_cost_raise(c, &c->ticks[class], ticks);
}

/* A call among the first of a burst. */
static inline void thread_cost_time_cold(struct thread_cost *c, enum cost_class class,
                                         uint64_t ticks)
{
    thread_cost_raise(c, &c->cold_timed[class], 1);
    thread_cost_raise(c, &c->cold_ticks[class], ticks);
}

#endif
