/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_flush.h"

#include "base/futex.h"
#include "base/say.h"
#include "base/ticks.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_other_client.h"
#include "cupti/gpu_parse.h"
#include "cupti/gpu_rest.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_stop.h"
#include "record/own_thread.h"
#include "record/recorded.h"
#include "record/synced.h"

/* how often to check whether the other client has released the records */
#define YIELDED_NS 50000000u
/* another process waits no longer than this before it kills this one */
#define ANSWER_NS 100000000u

/* Time between two flushes that nobody waits for: the initial value, which is also used while calls
 * keep waiting for the device. Otherwise it is a multiple of the CPU time that a flush takes. */
#define REST_NS_MIN 2000000u
#define REST_NS_MAX 16000000u
#define REST_SHARE  20

/* nothing is recorded after the next flush; set by the thread that ends it */
static atomic_bool is_last;

/* Flushes finished records; `forced`: also those that CUPTI holds back with unfinished ones. */
static void gpu_flush_flush(bool forced)
{
    CUptiResult result = gpu.cupti.cuptiActivityFlushAll(0);
    /* A flush covers all subscribers' buffers: others need their unfinished records to stay. */
    forced &= !gpu.shared || atomic_load(&is_last);
    if (forced && result == CUPTI_SUCCESS)
        result = gpu.cupti.cuptiActivityFlushAll(1);
    if (result == CUPTI_SUCCESS || atomic_load(&gpu.phase) == GPU_DEAD)
        return;
    counter_add(COUNTER_GPU_UNFLUSHED, 1);
    note(SAY_GPU, "GPU rows may be missing: CUPTI's flush failed: %s", gpu_result_text(result));
}

/*
 * Turns off what is no longer wanted (gpu_turn). On this thread CUPTI may take as long as it likes.
 */
static void gpu_flush_give_up(void)
{
    uint32_t off = recorded_asked();
    if (off & OFF_CALLBACKS)
        gpu_stop_callbacks();
    if (!(off & OFF_CUPTI) || atomic_load(&gpu.phase) != GPU_ACTIVE)
        return;
    gpu_flush_flush(false); /* unfinished work would come without times */
    gpu_stop_records();
}

/* One round. Returns false if CUPTI will deliver nothing more. */
static bool gpu_flush_look(uint32_t requested, bool is_killed, bool *is_asked, uint64_t *took_ns)
{
    *is_asked = is_killed || requested != atomic_load(&gpu_flusher.done);
    bool forced = *is_asked && (atomic_exchange(&gpu_flusher.is_forced, false) || is_killed);
    if (atomic_load(&gpu.phase) == GPU_DEAD)
        return false;
    gpu_other_client_look();
    uint64_t begin_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    if (*is_asked || atomic_load(&gpu.phase) == GPU_ACTIVE)
        gpu_flush_flush(forced);
    *took_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
    gpu_flush_give_up();
    gpu_rest_look();
    own_thread_report(COST_FLUSH);
    return true;
}

/* Waits until the next flush is due, or until somebody requests one. A call that waits for the
 * device makes it due earlier, but only as often as costs little. */
static void rest(uint32_t wake, uint64_t took_ns)
{
    static uint64_t busy_ns = REST_NS_MIN; /* used by the flushing thread only */
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

/* Answers another process that is about to kill this one. */
static void gpu_flush_answer(uint32_t asked)
{
    atomic_store(live_word(LIVE_OFFSET_ANSWERED), asked);
    futex_wake_all_shared(live_word(LIVE_OFFSET_ANSWERED));
}

static void *flush_main(void *data)
{
    (void)data;
    own_thread_begin("gpuprof-flush");
    gpu_devices_read(); /* not where CUPTI is started, which may be inside one of its callbacks */
    synced.wake = gpu_flush_wake;
    atomic_store(live_word(LIVE_OFFSET_FLUSHER), (uint32_t)gp.header.start_time);
    for (;;) {
        uint32_t wake = atomic_load(live_word(LIVE_OFFSET_WAKE));
        uint32_t asked = atomic_load(live_word(LIVE_OFFSET_ASKED));
        bool is_killed = asked != atomic_load(live_word(LIVE_OFFSET_ANSWERED));
        uint32_t requested = atomic_load(&gpu_flusher.requested);
        uint64_t took_ns;
        bool is_asked;
        /* Calls that wait from now on are served by the next flush; but a flush covers all
         * subscribers' buffers. */
        atomic_store(&synced.state, gpu.shared ? SYNCED_NOBODY : SYNCED_RESTS);
        if (!gpu_flush_look(requested, is_killed, &is_asked, &took_ns))
            break;
        if (is_killed) {
            gpu_parse_drain(ANSWER_NS);
            gpu_flush_answer(asked);
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
    /* processes that asked meanwhile need not wait */
    gpu_flush_answer(atomic_load(live_word(LIVE_OFFSET_ASKED)));
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
