/* SPDX-License-Identifier: Apache-2.0 */
/* Held gaps: gaps that copies ended, until the next kernel decides who they belong to. */
#include "analyse/idle_state.h"
#include "base/array.h"
#include "error.h"

/* A launch may have waited for a copy if it follows within this fraction of the idle time before
 * it. */
#define SOON_PART 10

bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_thread *launcher)
{
    const struct idle_entry *last = launcher ? idle_thread_last(launcher) : NULL;
    if (!last || launcher == gap->call.thread || gap->call.end_ns <= gap->begin_ns)
        return false;
    return launcher->depth || last->cause != IDLE_SYNC || gap->end_ns >= last->end_ns;
}

int idle_held_add(struct idle_held *h, const struct idle_gap *gap)
{
    if (!ARRAY_ROOM(h->gaps, h->count, h->capacity, 16))
        return GPUPROF_NO_MEMORY;
    h->busy_ns = h->count ? h->busy_ns : gap->busy_ns;
    h->compute_ns = h->count ? h->compute_ns : gap->compute_ns;
    h->gaps[h->count++] = *gap;
    return 0;
}

int idle_held_give(const struct idle *d, struct idle_held *h, uint64_t busy_ns,
                   const struct idle_submit *call, struct idle_rows *rows)
{
    uint32_t kept = 0;
    int error = 0;
    for (uint32_t i = 0; call && i < h->count; i++)
        if (h->gaps[i].call.thread == call->thread)
            call = NULL; /* the kernel's thread made the copy, too */
    uint64_t call_ns = call ? call->begin_ns : 0;
    uint64_t idle_ns = call_ns > busy_ns ? call_ns - busy_ns : 0; /* before the call */
    /* Decides for each gap, last first, whether the kernel may have waited for the copy that ended
     * it: it was launched before half of the gap had passed, or soon after the copy. */
    for (uint32_t i = h->count; i; i--) {
        struct idle_gap *g = &h->gaps[i - 1];
        uint64_t ns = g->end_ns - g->begin_ns;
        bool is_soon = g->call.end_ns <= call_ns && idle_ns < ns / SOON_PART;
        g->is_given = is_soon || call_ns <= g->begin_ns + ns / 2;
        if (call_ns > g->begin_ns)
            idle_ns += (call_ns < g->end_ns ? call_ns : g->end_ns) - g->begin_ns;
    }
    for (uint32_t i = 0; i < h->count; i++) {
        if (h->gaps[i].is_given && error == 0)
            error = idle_gap_charge(d, rows, &h->gaps[i]);
        else
            h->gaps[kept++] = h->gaps[i];
    }
    h->count = kept;
    return error;
}

int idle_held_charge(const struct idle *d, struct idle_held *h, const struct idle_submit *call,
                     const struct idle_thread *before, struct idle_rows *rows)
{
    struct idle_gap gap = h->gaps[0];
    gap.end_ns = h->gaps[h->count - 1].end_ns;
    gap.busy_ns = h->busy_ns;
    gap.compute_ns = h->compute_ns;
    gap.parts = h->gaps;
    gap.part_count = h->count;
    gap.call = *call;
    gap.before = before; /* a copy may have been the last to begin before it */
    h->count = 0;
    return idle_gap_charge(d, rows, &gap);
}
