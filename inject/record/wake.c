/* SPDX-License-Identifier: Apache-2.0 */
#include "record/wake.h"

#include "base/futex.h"
#include "base/ticks.h"
#include "record/state.h"

void writer_wake(void)
{
    atomic_fetch_add(&gp.writer.wake, 1);
    if (atomic_load(&gp.writer.asleep))
        futex_wake_all(&gp.writer.wake);
}

bool writer_flush(enum end_reason reason, uint64_t ns)
{
    if (!atomic_load(&gp.writer.running))
        return false;
    if (reason)
        atomic_store(&gp.writer.end_reason, reason);
    uint32_t wanted = 1 + atomic_fetch_add(&gp.writer.requested, 1);
    uint64_t end_ns = clock_ns(CLOCK_MONOTONIC) + ns;
    writer_wake();
    for (;;) {
        uint32_t done = atomic_load(&gp.writer.done);
        uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
        if ((int32_t)(done - wanted) >= 0)
            return true;
        if (now_ns >= end_ns || !atomic_load(&gp.writer.running))
            return false;
        futex_wait(&gp.writer.done, done, end_ns - now_ns);
    }
}
