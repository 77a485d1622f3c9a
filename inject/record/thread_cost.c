/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread_cost.h"

#include "api/api.h"
#include "base/pages.h"
#include "base/ticks.h"

#define PROBES_MAX 64
#define FILLING    UINT32_MAX /* in place of a tid */

struct thread_cost *thread_costs;
struct thread_cost thread_cost_shared;
_Atomic uint32_t thread_cost_sharer_count;

static _Atomic uint32_t hint; /* where to look for a free one; by each thread that takes one */

/* In the child of a fork it is the parent's, of which nothing holds. */
void thread_costs_start(void)
{
    if (thread_costs)
        memset(thread_costs, 0, THREAD_COSTS_MAX * sizeof *thread_costs);
    else
        thread_costs = pages_map(THREAD_COSTS_MAX * sizeof *thread_costs);
    memset(&thread_cost_shared, 0, sizeof thread_cost_shared);
    atomic_store(&thread_cost_sharer_count, 0);
}

struct thread_cost *thread_cost_take(uint32_t number, uint32_t tid, bool is_own)
{
    for (uint32_t i = 0; !is_own && thread_costs && i < PROBES_MAX; i++) {
        struct thread_cost *c =
            &thread_costs[atomic_fetch_add_explicit(&hint, 1, memory_order_relaxed) %
                          THREAD_COSTS_MAX];
        uint32_t free = 0;
        if (atomic_load_explicit(&c->tid, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&c->tid, &free, FILLING)) {
            c->number = number;
            c->begin = ticks_now();
            atomic_store_explicit(&c->tid, tid, memory_order_release);
            return c;
        }
    }
    if (!is_own)
        atomic_fetch_add_explicit(&thread_cost_sharer_count, 1, memory_order_relaxed);
    return &thread_cost_shared;
}

uint32_t thread_cost_owner(const struct thread_cost *c)
{
    uint32_t tid = atomic_load_explicit(&c->tid, memory_order_acquire);
    return tid == FILLING ? 0 : tid;
}
