/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_flush.h"

#include "call.h"
#include "futex.h"
#include "gpu.h"
#include "gpu_parse.h"
#include "gpu_rival.h"
#include "own_thread.h"
#include "say.h"
#include "ticks.h"

#define YIELDED_NS 50000000u /* how often to look whether the records can be had again */

static struct {
    _Atomic uint32_t wake;      /* futex: raised with each request */
    _Atomic uint32_t requested; /* number of the last flush that somebody wants */
    _Atomic uint32_t done;      /* futex: number of the last flush done */
    _Atomic uint32_t running;
    atomic_bool is_last;       /* nothing is recorded after it */
    _Atomic uint32_t given_up; /* steps of the ladder that are CUPTI's: a bit each */
} flusher;

/* Everything that is finished; then, on demand, what CUPTI holds back with it. */
static void flush(bool forced)
{
    CUptiResult result = gpu.cupti.cuptiActivityFlushAll(0);
    /* All subscribers' buffers come: others want what is not finished no sooner than it is. */
    forced &= !gpu.shared || atomic_load(&flusher.is_last);
    if (forced && result == CUPTI_SUCCESS)
        result = gpu.cupti.cuptiActivityFlushAll(1);
    if (result == CUPTI_SUCCESS || atomic_load(&gpu.phase) == GPU_DEAD)
        return;
    counter_add(COUNTER_GPU_UNFLUSHED, 1);
    say(SAY_GPU, "GPU rows may be missing: CUPTI's flush failed: %s", gpu_result_text(result));
}

/* What the governor has asked for. Here CUPTI may take as long as it likes. */
static void give_up(void)
{
    uint32_t steps = atomic_load(&flusher.given_up);
    if (steps >> LADDER_CALLBACKS & 1)
        gpu_stop_callbacks();
    if (!(steps >> LADDER_CUPTI & 1) || atomic_load(&gpu.phase) != GPU_ACTIVE)
        return;
    flush(false); /* what is not finished would come without times */
    gpu_give_up();
}

static void *flush_main(void *data)
{
    (void)data;
    own_thread_begin("gpuprof-flush");
    for (;;) {
        uint32_t wake = atomic_load(&flusher.wake);
        uint32_t requested = atomic_load(&flusher.requested);
        bool forced = requested != atomic_load(&flusher.done);
        if (atomic_load(&gpu.phase) == GPU_DEAD)
            break;
        gpu_rival_look();
        if (forced || atomic_load(&gpu.phase) == GPU_ACTIVE)
            flush(forced);
        give_up();
        own_thread_tell(COST_FLUSH);
        if (forced) {
            atomic_store(&flusher.done, requested);
            futex_wake_all(&flusher.done);
        } else {
            futex_wait(&flusher.wake, wake,
                       atomic_load(&gpu.phase) == GPU_YIELDED
                           ? YIELDED_NS
                           : gp.settings.numbers[SETTING_GPU_FLUSH]);
        }
    }
    atomic_store(&flusher.running, 0);
    futex_wake_all(&flusher.done);
    own_thread_end();
    return NULL;
}

bool gpu_flush_start(void)
{
    atomic_store(&flusher.running, 1);
    return own_thread_create(flush_main, NULL) == 0;
}

void gpu_flush_wake(void)
{
    atomic_fetch_add(&flusher.wake, 1);
    futex_wake_all(&flusher.wake);
}

void gpu_flush_give_up(enum ladder_step step)
{
    atomic_fetch_or(&flusher.given_up, 1u << step);
    gpu_flush_wake();
}

void gpu_flush_is_last(void)
{
    atomic_store(&flusher.is_last, true);
}

bool gpu_drain(uint64_t ns)
{
    uint32_t phase = atomic_load(&gpu.phase);
    if ((phase != GPU_ACTIVE && phase != GPU_YIELDED) || atomic_load(&gpu.epoch) != epoch_now())
        return true;
    uint32_t wanted = 1 + atomic_fetch_add(&flusher.requested, 1);
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), end_ns = now_ns + ns;
    bool flushed = false;
    gpu_flush_wake();
    while (now_ns < end_ns && atomic_load(&flusher.running)) {
        uint32_t done = atomic_load(&flusher.done);
        flushed = (int32_t)(done - wanted) >= 0;
        if (flushed)
            break;
        futex_wait(&flusher.done, done, end_ns - now_ns);
        now_ns = clock_ns(CLOCK_MONOTONIC);
    }
    if (!flushed)
        counter_add(COUNTER_GPU_UNFLUSHED, 1);
    now_ns = clock_ns(CLOCK_MONOTONIC);
    return gpu_parse_drain(now_ns < end_ns ? end_ns - now_ns : 0) && flushed;
}
