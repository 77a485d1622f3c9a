/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <time.h>

#include "sim_cupti.h"

/*
 * The device's clock, which is CLOCK_MONOTONIC here, in the client's terms: CLOCK_REALTIME, or the
 * client's callback, which is sampled now and then and interpolated in between. A clock that drifts
 * is right at each sample and wrong by more and more until the next.
 */

enum { ANCHOR_COUNT = 64, HEAD_RECORDS = 4, EARLY_CONTEXTS_MAX = 64, ANCHOR_TRIES = 3 };

struct anchor {
    uint64_t mono_ns, client_ns;
};

#define STRANGE_NS 300000000000000000u /* ten years: on no clock */

/* Of the process or of one subscriber. */
static struct timing {
    CUpti_TimestampCallbackFunc callback; /* atomic */
    unsigned registered;
    unsigned corrupt_left;
    struct anchor anchors[ANCHOR_COUNT]; /* a ring, oldest first */
    unsigned anchor_first, anchor_count;
    uint32_t early[EARLY_CONTEXTS_MAX]; /* contexts that were there before the callback */
    unsigned early_count;
    uint64_t zero_count, strange_count;
    uint64_t realtime_distance_ns; /* what CLOCK_REALTIME is ahead; 0: not yet known */
} timings[SCOPE_COUNT];

uint64_t sim_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t realtime_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The sample with the shortest time around it is the best of a few. */
static void anchor(struct timing *timing)
{
    struct anchor best = {0, 0};
    uint64_t best_ns = UINT64_MAX;
    timing->realtime_distance_ns = 0;
    if (!timing->callback)
        return;
    cupti_callback_begin("timestamp");
    for (int i = 0; i < ANCHOR_TRIES; i++) {
        uint64_t before_ns = sim_now_ns();
        uint64_t client_ns = timing->callback();
        uint64_t around_ns = sim_now_ns() - before_ns;
        if (around_ns < best_ns) {
            best_ns = around_ns;
            best = (struct anchor){before_ns + around_ns / 2, client_ns};
        }
    }
    cupti_callback_end();
    if (timing->anchor_count == ANCHOR_COUNT) {
        timing->anchor_first = (timing->anchor_first + 1) % ANCHOR_COUNT;
        timing->anchor_count--;
    }
    timing->anchors[(timing->anchor_first + timing->anchor_count++) % ANCHOR_COUNT] = best;
}

static void note_early(const struct sim_trace_resource *resource)
{
    if (resource->kind == SIM_CONTEXT_CREATED)
        clock_context_created(resource->context_id);
}

void clock_anchor(void)
{
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        anchor(&timings[scope]);
}

void clock_register(unsigned scope, CUpti_TimestampCallbackFunc callback)
{
    struct timing *timing = &timings[scope];
    if (!timing->registered)
        cupti_driver->each_resource(note_early); /* those made before anybody listened */
    __atomic_store_n(&timing->callback, callback, __ATOMIC_RELEASE);
    if (timing->registered++)
        timing->corrupt_left = HEAD_RECORDS;
    timing->anchor_count = 0;
    anchor(timing);
}

void clock_context_created(uint32_t context_id)
{
    for (struct timing *timing = timings; timing < timings + SCOPE_COUNT; timing++)
        if (!timing->registered && timing->early_count < EARLY_CONTEXTS_MAX)
            timing->early[timing->early_count++] = context_id;
}

static bool context_is_early(const struct timing *timing, uint32_t context_id)
{
    for (unsigned i = 0; i < timing->early_count; i++)
        if (timing->early[i] == context_id)
            return true;
    return false;
}

/* One distance for all records of a flush: the start and the end of one must not differ by an
 * interruption. Between flushes somebody may have set the clock. */
static uint64_t realtime_distance(void)
{
    uint64_t best_ns = UINT64_MAX, distance_ns = 0;
    for (int i = 0; i < 4 * ANCHOR_TRIES; i++) {
        uint64_t before_ns = sim_now_ns(), real_ns = realtime_ns();
        uint64_t around_ns = sim_now_ns() - before_ns;
        if (around_ns < best_ns) {
            best_ns = around_ns;
            distance_ns = real_ns - before_ns - around_ns / 2;
        }
    }
    return distance_ns;
}

static uint64_t to_realtime(struct timing *timing, uint64_t mono_ns)
{
    if (!timing->realtime_distance_ns)
        timing->realtime_distance_ns = realtime_distance();
    return mono_ns + timing->realtime_distance_ns;
}

static const struct anchor *anchor_at(const struct timing *timing, unsigned index)
{
    return &timing->anchors[(timing->anchor_first + index) % ANCHOR_COUNT];
}

static uint64_t to_client(const struct timing *timing, uint64_t mono_ns)
{
    unsigned after = 0;
    while (after < timing->anchor_count && anchor_at(timing, after)->mono_ns <= mono_ns)
        after++;
    const struct anchor *low = anchor_at(timing, after ? after - 1 : 0);
    double rate = 1.0;
    if (after && after < timing->anchor_count) {
        const struct anchor *high = anchor_at(timing, after);
        rate = (double)(int64_t)(high->client_ns - low->client_ns) /
               (double)(high->mono_ns - low->mono_ns + 1);
    }
    double since_ns = (double)(int64_t)(mono_ns - low->mono_ns);
    return low->client_ns +
           (uint64_t)(int64_t)(since_ns * (rate + (double)cupti_switches.drift_ppm / 1e6));
}

static uint64_t convert(const struct cupti_record *record, uint64_t mono_ns)
{
    struct timing *timing = &timings[record->scope];
    if (mono_ns == 0)
        return 0;
    if (!timing->callback || cupti_switches.is_realtime ||
        (cupti_switches.has_early_domain && context_is_early(timing, record->context_id)))
        return to_realtime(timing, mono_ns);
    return to_client(timing, mono_ns);
}

static void put(struct cupti_record *record, unsigned at, uint64_t time)
{
    if (at)
        memcpy(record->payload + at, &time, sizeof time);
}

void clock_apply(struct cupti_record *record)
{
    struct timing *timing = &timings[record->scope];
    if (!record->start_at)
        return;
    uint64_t start = convert(record, record->start_ns), end = convert(record, record->end_ns);
    if (timing->corrupt_left && record->is_device) {
        timing->corrupt_left--;
        start = timing->callback ? to_realtime(timing, record->start_ns) : record->start_ns;
        end = timing->callback ? end : start / 2;
    }
    if (cupti_switches.zero && record->is_device && ++timing->zero_count % cupti_switches.zero == 0)
        start = end = 0;
    if (cupti_switches.strange && record->is_device &&
        ++timing->strange_count % cupti_switches.strange == 0)
        start += STRANGE_NS, end += STRANGE_NS;
    put(record, record->start_at, start);
    put(record, record->end_at, end);
    put(record, record->queued_at, convert(record, record->queued_ns));
    put(record, record->submitted_at, convert(record, record->queued_ns));
}

CUptiResult clock_now(unsigned scope, uint64_t *timestamp)
{
    CUpti_TimestampCallbackFunc callback =
        __atomic_load_n(&timings[scope].callback, __ATOMIC_ACQUIRE);
    *timestamp = callback ? callback() : realtime_ns();
    return CUPTI_SUCCESS;
}
