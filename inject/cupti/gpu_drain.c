/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_drain.h"

#include "base/futex.h"
#include "base/ticks.h"
#include "cupti/gpu_parse.h"
#include "cupti/gpu_state.h"

struct gpu_flusher gpu_flusher;

void gpu_flush_wake(void)
{
    atomic_fetch_add(live_word(LIVE_OFFSET_WAKE), 1);
    futex_wake_all_shared(live_word(LIVE_OFFSET_WAKE));
}

bool gpu_drain_finished(uint64_t ns)
{
    uint32_t phase = atomic_load(&gpu.phase);
    if ((phase != GPU_ACTIVE && phase != GPU_YIELDED) || atomic_load(&gpu.epoch) != epoch_now())
        return true;
    uint32_t wanted = 1 + atomic_fetch_add(&gpu_flusher.requested, 1);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + ns;
    bool flushed = false;
    gpu_flush_wake();
    while (now_ns < end_ns && atomic_load(&gpu_flusher.running)) {
        uint32_t done = atomic_load(&gpu_flusher.done);
        flushed = (int32_t)(done - wanted) >= 0;
        if (flushed)
            break;
        futex_wait(&gpu_flusher.done, done, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    if (!flushed)
        counter_add(COUNTER_GPU_UNFLUSHED, 1);
    now_ns = clock_ns(CLOCK_MONOTONIC);
    return gpu_parse_drain(now_ns < end_ns ? end_ns - now_ns : 0) && flushed;
}

bool gpu_drain(uint64_t ns)
{
    atomic_store(&gpu_flusher.is_forced, true);
    return gpu_drain_finished(ns);
}
