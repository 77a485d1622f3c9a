/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_flush.h"

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_rival.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_stop.h"
#include "record/own_thread.h"
#include "record/recorded.h"

#define YIELDED_NS 50000000u /* how often to look whether the records can be had again */

static atomic_bool is_last; /* nothing is recorded after the next flush; by who ends it */

/* Everything that is finished; then, on demand, what CUPTI holds back with it. */
static void flush(bool forced)
{
    CUptiResult result = gpu.cupti.cuptiActivityFlushAll(0);
    /* All subscribers' buffers come: others want what is not finished no sooner than it is. */
    forced &= !gpu.shared || atomic_load(&is_last);
    if (forced && result == CUPTI_SUCCESS)
        result = gpu.cupti.cuptiActivityFlushAll(1);
    if (result == CUPTI_SUCCESS || atomic_load(&gpu.phase) == GPU_DEAD)
        return;
    counter_add(COUNTER_GPU_UNFLUSHED, 1);
    say(SAY_GPU, "GPU rows may be missing: CUPTI's flush failed: %s", gpu_result_text(result));
}

/* What is not to be had any more (gpu_turn). Here CUPTI may take as long as it likes. */
static void give_up(void)
{
    uint32_t off = recorded_asked();
    if (off & OFF_CALLBACKS)
        gpu_stop_callbacks();
    if (!(off & OFF_CUPTI) || atomic_load(&gpu.phase) != GPU_ACTIVE)
        return;
    flush(false); /* what is not finished would come without times */
    gpu_stop_records();
}

static void *flush_main(void *data)
{
    (void)data;
    own_thread_begin("gpuprof-flush");
    gpu_devices_read(); /* not where CUPTI is started: that may be in one of its callbacks */
    for (;;) {
        uint32_t wake = atomic_load(&gpu_flusher.wake);
        uint32_t requested = atomic_load(&gpu_flusher.requested);
        bool forced = requested != atomic_load(&gpu_flusher.done);
        if (atomic_load(&gpu.phase) == GPU_DEAD)
            break;
        gpu_rival_look();
        if (forced || atomic_load(&gpu.phase) == GPU_ACTIVE)
            flush(forced);
        give_up();
        own_thread_tell(COST_FLUSH);
        if (forced) {
            atomic_store(&gpu_flusher.done, requested);
            futex_wake_all(&gpu_flusher.done);
        } else {
            futex_wait(&gpu_flusher.wake, wake,
                       atomic_load(&gpu.phase) == GPU_YIELDED
                           ? YIELDED_NS
                           : gp.settings.numbers[SETTING_GPU_FLUSH]);
        }
    }
    atomic_store(&gpu_flusher.running, 0);
    futex_wake_all(&gpu_flusher.done);
    own_thread_end();
    return NULL;
}

bool gpu_flush_start(void)
{
    atomic_store(&gpu_flusher.running, 1);
    return own_thread_create(flush_main, NULL) == 0;
}

void gpu_flush_is_last(void)
{
    atomic_store(&is_last, true);
}
