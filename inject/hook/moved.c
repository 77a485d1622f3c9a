/* SPDX-License-Identifier: Apache-2.0 */
#include "hook/moved.h"

enum { FREE, BUSY, FULL };

static struct {
    _Atomic uint32_t state; /* stays BUSY for good if a jump left it so */
    _Atomic uintptr_t call;
    _Atomic uint64_t end;
    struct moved_end moved;
} ends[MOVED_MAX];

static _Atomic uint32_t put_count;

static void moved_put_end(const struct call *c, const struct moved_end *m)
{
    unsigned i = atomic_fetch_add(&put_count, 1) % MOVED_MAX;
    if (atomic_exchange(&ends[i].state, BUSY) == BUSY)
        return;
    ends[i].moved = *m;
    atomic_store(&ends[i].end, m->end);
    atomic_store(&ends[i].call, (uintptr_t)c);
    atomic_store(&ends[i].state, FULL);
}

void moved_put(struct thread *t, struct call *c, const struct call_site *site, uint64_t end,
               int result, const uint64_t *words)
{
    struct moved_end m = {.site = site, .end = end, .result = result};
    if (!thread_takes_part(t) && (t->epoch != EPOCH_THREAD || epoch_now() == EPOCH_NONE))
        return; /* the recording has ended, or this is the child of a fork */
    memcpy(m.words, words, site->count * sizeof words[0]);
    moved_put_end(c, &m);
    *(volatile uintptr_t *)&c->mark = 0; /* the call cannot return any more */
    /* otherwise the fast path would take the next call at this address for the old one */
    t->has_moved = true;
    if (thread_takes_part(t))
        thread_set_limit(t);
}

bool moved_take(const struct call *c, uint64_t begin, struct moved_end *m)
{
    unsigned first = MOVED_MAX;
    uint64_t first_after = UINT64_MAX;
    for (unsigned i = 0; atomic_load(&put_count) && i < MOVED_MAX; i++) {
        uint64_t after = atomic_load(&ends[i].end) - begin;
        if (atomic_load(&ends[i].state) == FULL && atomic_load(&ends[i].call) == (uintptr_t)c &&
            after < first_after && after < UINT64_MAX / 2) {
            first = i;
            first_after = after;
        }
    }
    uint32_t full = FULL;
    if (first == MOVED_MAX || !atomic_compare_exchange_strong(&ends[first].state, &full, BUSY))
        return false;
    *m = ends[first].moved;
    bool is_it = atomic_load(&ends[first].call) == (uintptr_t)c && m->end - begin == first_after;
    atomic_store(&ends[first].state, is_it ? FREE : FULL);
    return is_it;
}
