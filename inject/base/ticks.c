/* SPDX-License-Identifier: Apache-2.0 */
#include "base/ticks.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

#define REALTIME_TRIES 4

#define CALIBRATE_NS 2000000u

struct process_clock process_clock;

static uint32_t choose_source(void)
{
#if defined(__x86_64__)
    unsigned a, b, c, d;
    /* Leaf 0x80000007, EDX bit 8: the TSC has a constant rate in all power states. */
    if (__get_cpuid(0x80000007u, &a, &b, &c, &d) && d >> 8 & 1)
        return CLOCK_SOURCE_TSC;
#elif defined(__aarch64__)
    return CLOCK_SOURCE_CNTVCT;
#endif
    return CLOCK_SOURCE_MONOTONIC;
}

void ticks_sample(uint64_t *ticks, uint64_t *monotonic_ns)
{
    uint64_t best = UINT64_MAX;
    for (int i = 0; i < 3; i++) {
        uint64_t before = ticks_now();
        uint64_t ns = clock_ns(CLOCK_MONOTONIC);
        uint64_t after = ticks_now();
        if (after - before < best) {
            best = after - before;
            *ticks = before + (after - before) / 2;
            *monotonic_ns = ns;
        }
    }
}

void ticks_load(void)
{
    process_clock.source = choose_source();
    ticks_sample(&process_clock.load_ticks, &process_clock.load_monotonic_ns);
}

/* Difference of CLOCK_REALTIME and CLOCK_MONOTONIC. An interruption between the two readings must
 * not count. */
static uint64_t realtime_ahead(void)
{
    uint64_t best_ns = UINT64_MAX, ahead_ns = 0;
    for (int i = 0; i < REALTIME_TRIES; i++) {
        uint64_t before_ns = clock_ns(CLOCK_MONOTONIC), real_ns = clock_ns(CLOCK_REALTIME);
        uint64_t around_ns = clock_ns(CLOCK_MONOTONIC) - before_ns;
        if (around_ns < best_ns) {
            best_ns = around_ns;
            ahead_ns = real_ns - before_ns - around_ns / 2;
        }
    }
    return ahead_ns;
}

void ticks_calibrate(void)
{
    struct clock_scale *scale = &process_clock.scale;
    uint64_t ticks, now_ns;
    do
        ticks_sample(&ticks, &now_ns);
    while (now_ns - process_clock.load_monotonic_ns < CALIBRATE_NS);
    scale->source = process_clock.source;
    scale->ticks_zero = process_clock.load_ticks;
    scale->mult = (uint64_t)1 << CLOCK_SCALE_SHIFT;
    if (process_clock.source != CLOCK_SOURCE_MONOTONIC && ticks > process_clock.load_ticks)
        scale->mult = (uint64_t)(((unsigned __int128)(now_ns - process_clock.load_monotonic_ns)
                                  << CLOCK_SCALE_SHIFT) /
                                 (ticks - process_clock.load_ticks));
    if (scale->mult == 0)
        scale->mult = 1;
    process_clock.monotonic_zero_ns = process_clock.load_monotonic_ns;
    process_clock.realtime_zero_ns = process_clock.load_monotonic_ns + realtime_ahead();
}
