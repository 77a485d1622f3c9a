/* SPDX-License-Identifier: Apache-2.0 */
#include "host/gil_wait.h"

#include <errno.h>
#include <stdatomic.h>

#include "base/memory_read.h"
#include "python/python.h"
#include "record/recorded.h"
#include "record/thread.h"

#define APART_NS 20000u /* slices closer than this belong to one wait */

/* Addresses of the lock's two condition variables; 0: not known. Set by every thread that finds
 * them. */
static _Atomic uint64_t dropped, taken;

/* Threads may come as soon as a recording begins, which is before the lock is watched. */
static void find_lock(void)
{
    struct python_gil_place place;
    if (atomic_load(&taken) || !python_gil_find(&place))
        return;
    atomic_store(&dropped, place.dropped);
    atomic_store(&taken, place.taken);
}

/* CPython's struct wait_entry: the address is directly before the semaphore. */
uint64_t gil_parked(uint64_t semaphore)
{
    uint64_t address;
    return memory_read(semaphore - sizeof address, &address, sizeof address) ? address : 0;
}

static uint64_t gil_wait_ns_of(uint64_t ticks)
{
    return (uint64_t)(((unsigned __int128)ticks * gp.header.scale.mult) >> CLOCK_SCALE_SHIFT);
}

bool gil_take_call(struct thread *t, struct gil_wait *w, const struct os_said *s, uint64_t parked,
                   uint32_t stack)
{
    find_lock();
    bool is_slice = s->object && s->object == atomic_load(&dropped);
    bool is_stop = parked && python_was_stopped(parked);
    if (!is_slice && !is_stop && !(s->object && s->object == atomic_load(&taken)))
        return false;
    if (!is_slice || !w->ran_out || gil_wait_ns_of(s->begin - w->end) > APART_NS) {
        gil_report_wait(t, w);
        *w = (struct gil_wait){
            .begin = s->begin, .stack = stack, .part = is_stop ? GIL_STOPPED : GIL_WAITED};
    }
    w->end = s->end;
    w->ran_out = is_slice && s->error == ETIMEDOUT;
    w->switch_count += w->ran_out;
    return true;
}

void gil_report_wait(struct thread *t, struct gil_wait *w)
{
    struct record r = {RECORD_WITH(GIL, [GIL_OTHER] = w->other, [GIL_SWITCHES] = w->switch_count),
                       .code = w->part, .begin = w->begin, .duration = w->end - w->begin,
                       .stack_id = w->stack};
    bool is_lost = w->begin && !thread_append(t, &r);
    *w = (struct gil_wait){0};
    if (!is_lost)
        return;
    counter_add(COUNTER_DROPPED, (uint64_t)-1);
    counter_add(COUNTER_OS_DROPPED, 1);
}
