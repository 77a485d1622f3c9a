/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_flush.h"

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_parse.h"
#include "cupti/gpu_rest.h"
#include "cupti/gpu_rival.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_stop.h"
#include "record/own_thread.h"
#include "record/recorded.h"
#include "record/synced.h"

#define YIELDED_NS 50000000u  /* how often to look whether the records can be had again */
#define ANSWER_NS  100000000u /* nobody who is about to kill this process waits longer */

/* Between two flushes that nobody waits for: at first, and while calls wait for the device all the
 * time; and so many times what a flush takes of a
 * processor. */
#define REST_NS_MIN 2000000u
#define REST_NS_MAX 16000000u
#define REST_SHARE  20

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
    note(SAY_GPU, "GPU rows may be missing: CUPTI's flush failed: %s", gpu_result_text(result));
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

/* One round. False: CUPTI will hand nothing over any more. */
static bool look(uint32_t requested, bool is_killed, bool *is_asked, uint64_t *took_ns)
{
    *is_asked = is_killed || requested != atomic_load(&gpu_flusher.done);
    bool forced = *is_asked && (atomic_exchange(&gpu_flusher.is_forced, false) || is_killed);
    if (atomic_load(&gpu.phase) == GPU_DEAD)
        return false;
    gpu_rival_look();
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (*is_asked || atomic_load(&gpu.phase) == GPU_ACTIVE)
        flush(forced);
    *took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    give_up();
    gpu_rest_look();
    own_thread_tell(COST_FLUSH);
    return true;
}

/*
 * Until it is time for the next flush, or somebody asks. A call that waits for the device makes it
 * time, but not more often than costs little, however many there are.
 */
static void rest(uint32_t wake, uint64_t took_ns)
{
    static uint64_t busy_ns = REST_NS_MIN; /* of the flushing thread alone */
    uint64_t period_ns = gp.settings.numbers[SETTING_GPU_FLUSH];
    uint64_t rest_ns = took_ns * REST_SHARE;
    uint32_t rests = SYNCED_RESTS;
    if (atomic_load(&gpu.phase) == GPU_YIELDED) {
        futex_wait_shared(live_word(LIVE_OFFSET_WAKE), wake, YIELDED_NS);
        return;
    }
    rest_ns = rest_ns > busy_ns ? rest_ns : busy_ns;
    rest_ns = rest_ns < period_ns ? rest_ns : period_ns;
    futex_wait_shared(live_word(LIVE_OFFSET_WAKE), wake, rest_ns);
    if (atomic_compare_exchange_strong(&synced.state, &rests, SYNCED_ASLEEP))
        busy_ns = REST_NS_MIN;
    else if (busy_ns < REST_NS_MAX)
        busy_ns *= 2;
    if (rests != SYNCED_DUE)
        futex_wait_shared(live_word(LIVE_OFFSET_WAKE), wake, period_ns - rest_ns);
}

/* To another process, which is about to kill this one. */
static void answer(uint32_t asked)
{
    atomic_store(live_word(LIVE_OFFSET_ANSWERED), asked);
    futex_wake_all_shared(live_word(LIVE_OFFSET_ANSWERED));
}

static void *flush_main(void *data)
{
    (void)data;
    own_thread_begin("gpuprof-flush");
    gpu_devices_read(); /* not where CUPTI is started: that may be in one of its callbacks */
    synced.wake = gpu_flush_wake;
    atomic_store(live_word(LIVE_OFFSET_FLUSHER), (uint32_t)gp.header.start_time);
    for (;;) {
        uint32_t wake = atomic_load(live_word(LIVE_OFFSET_WAKE));
        uint32_t asked = atomic_load(live_word(LIVE_OFFSET_ASKED));
        bool is_killed = asked != atomic_load(live_word(LIVE_OFFSET_ANSWERED));
        uint32_t requested = atomic_load(&gpu_flusher.requested);
        uint64_t took_ns;
        bool is_asked;
        /* What is waited for from now on comes next; but a flush is of all subscribers' buffers. */
        atomic_store(&synced.state, gpu.shared ? SYNCED_NOBODY : SYNCED_RESTS);
        if (!look(requested, is_killed, &is_asked, &took_ns))
            break;
        if (is_killed) {
            gpu_parse_drain(ANSWER_NS);
            answer(asked);
        }
        if (is_asked) {
            atomic_store(&gpu_flusher.done, requested);
            futex_wake_all(&gpu_flusher.done);
        } else {
            rest(wake, took_ns);
        }
    }
    atomic_store(&synced.state, SYNCED_NOBODY);
    atomic_store(live_word(LIVE_OFFSET_FLUSHER), 0);
    answer(atomic_load(live_word(LIVE_OFFSET_ASKED))); /* who asked meanwhile waits for nothing */
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
