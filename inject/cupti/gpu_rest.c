/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_rest.h"

#include "base/futex.h"
#include "base/ticks.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"
#include "hook/call.h"
#include "record/pool.h"
#include "record/recorded.h"

#define LOCK_NS 100000000u /* the thread that holds the lock checks again when it is done */

static struct lock lock;
static atomic_bool is_resting; /* changed with the lock held */

/* With OFF_CALLS alone, recording is about to resume (windows.h), and nobody would wait for us
 * then. */
static bool may_rest(void)
{
    return (recorded_asked() & OFF_PROGRAM) == OFF_PROGRAM && !attention_captures() &&
           gpu_is_active() && gpu_detachment() == GPU_HEARS;
}

/* Are calls open that began before the stop? Their ends must still be recorded. No further calls
 * begin meanwhile. */
static bool are_calls_open(void)
{
    uint32_t allocated = atomic_load(&gp.pool.allocated);
    for (uint32_t i = 0; i < allocated; i++) {
        uint8_t *chunk = pool_chunk(&gp.pool, i);
        if (atomic_load(chunk_state(chunk)) == LIVE_OWNED &&
            chunk_u64(chunk, LIVE_CHUNK_COMMITTED) & LIVE_OPEN_MASK)
            return true;
    }
    return false;
}

/*
 * The runtime's callbacks first: otherwise a driver call inside a runtime call whose begin was not
 * reported would look like the program's own. What a guest wants stays on; it may have asked
 * meanwhile.
 */
static void switch_all(bool on)
{
    static const CUpti_CallbackDomain domains[] = {CUPTI_CB_DOMAIN_RUNTIME_API,
                                                   CUPTI_CB_DOMAIN_DRIVER_API};
    for (unsigned d = 0; d < sizeof domains / sizeof domains[0]; d++)
        for (uint32_t cbid = 0; cbid < CUPTI_CBID_MAX; cbid++) {
            int code = (int)gpu.callbacks.codes[domains[d]][cbid] - 1;
            if (code < 0 || !gpu.is_called_back[code] || call_always_goes_on(call_sites[code]))
                continue;
            /* set first: a guest that turns one off checks it */
            atomic_store(&gpu.rests[code], !on);
            if (on || !gpu_subscriber_wants(domains[d], cbid))
                gpu.cupti.cuptiEnableCallback(on, gpu.subscriber, domains[d], cbid);
            if (!on && gpu_subscriber_wants(domains[d], cbid))
                gpu.cupti.cuptiEnableCallback(1, gpu.subscriber, domains[d], cbid);
        }
}

/* Repeats until the state is right: a thread that asked meanwhile may not have got the lock. */
static void gpu_rest_follow(bool may_begin)
{
    while (atomic_load(&is_resting) ? !may_rest() : may_begin && may_rest() && !are_calls_open()) {
        if (!lock_take(&lock, LOCK_NS))
            return;
        bool on = atomic_load(&is_resting);
        if (on ? !may_rest() : may_rest()) {
            atomic_store(&is_resting, !on);
            if (!on || gpu_detachment() == GPU_HEARS)
                switch_all(on);
        }
        lock_drop(&lock);
    }
}

void gpu_rest_look(void)
{
    static uint64_t since_ns; /* used by the flushing thread; 0: recording is on */
    uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
    bool is_stopped = may_rest();
    if (!is_stopped || !since_ns)
        since_ns = is_stopped ? now_ns : 0;
    gpu_rest_follow(is_stopped && now_ns - since_ns >= GPU_REST_NS);
}

void gpu_rest_turn(void)
{
    gpu_rest_follow(false);
}
