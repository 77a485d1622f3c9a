/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_clock.h"

#include "base/ticks.h"
#include "record/state.h"

#define INVERSE_SHIFT 56          /* times below 2^64 ns and clocks below 256 GHz cannot overflow */
#define SLACK_NS      1000000000u /* a device's clock may be ahead by this much */

/* One moment on all clocks. CLOCK_REALTIME may be set, and the others drift by some parts per
 * million, so the values are valid for recent times only. Used by the parser. */
static struct {
    uint64_t ticks;
    uint64_t ns; /* in ns of the recording's time scale */
    uint64_t monotonic_ns;
    uint64_t realtime_ns;
} now;

void gpu_clock_look(void)
{
    ticks_sample(&now.ticks, &now.monotonic_ns);
    now.ns = clock_scale_ns(&gp.header.scale, now.ticks);
    uint64_t realtime_ns = clock_ns(CLOCK_REALTIME);
    now.realtime_ns = realtime_ns - (clock_ns(CLOCK_MONOTONIC) - now.monotonic_ns);
}

/* Is `time` within the process's life, on a clock that now reads `now_ns`? Then *ns is its time. */
static bool lived(uint64_t time, uint64_t now_ns, uint64_t *ns)
{
    if (time > now_ns + SLACK_NS || time + now.ns < now_ns)
        return false;
    *ns = time + now.ns - now_ns;
    return true;
}

/* The first tick at which clock_scale_ns is at least `ns`, without a division: the inverse of
 * `mult` gives this tick or one slightly before. */
static uint64_t ticks_at(const struct clock_scale *scale, uint64_t ns)
{
    static uint64_t mult;
    static unsigned __int128 inverse;
    if (mult != scale->mult) {
        mult = scale->mult;
        inverse = ((unsigned __int128)1 << (CLOCK_SCALE_SHIFT + INVERSE_SHIFT)) / mult;
    }
    uint64_t ticks = scale->ticks_zero + (uint64_t)((ns * inverse) >> INVERSE_SHIFT);
    while (clock_scale_ns(scale, ticks) < ns)
        ticks++;
    return ticks;
}

bool gpu_clock_ticks(uint64_t time, uint64_t *ticks)
{
    const struct clock_scale *scale = &gp.header.scale;
    uint64_t ns;
    if (lived(time, now.ns, &ns) || lived(time, now.realtime_ns, &ns) ||
        lived(time, now.monotonic_ns, &ns)) {
        *ticks = ticks_at(scale, ns);
        return true;
    }
    *ticks = time;
    return time >= scale->ticks_zero && lived(clock_scale_ns(scale, time), now.ns, &ns);
}
