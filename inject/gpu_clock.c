/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu_clock.h"

#include "state.h"
#include "ticks.h"

#define INVERSE_SHIFT 56          /* times below 2^64 ns and clocks below 256 GHz: no overflow */
#define SLACK_NS      1000000000u /* by which a device's time may run ahead */

/* From the scale's zero until now, and a little more. Grows as the process does. */
static uint64_t life_ns;

static bool lived(uint64_t time, uint64_t zero)
{
    if (time < zero)
        return false;
    if (time - zero > life_ns)
        life_ns = clock_scale_ns(&gp.header.scale, ticks_now()) + SLACK_NS;
    return time - zero <= life_ns;
}

/* The first tick at which clock_scale_ns is at least `ns`, without a division: the inverse of
 * `mult` gives it or a little less. */
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
    const struct stream_header *h = &gp.header;
    uint64_t ns;
    if (lived(time, 0))
        ns = time;
    else if (lived(time, h->realtime_zero_ns))
        ns = time - h->realtime_zero_ns;
    else if (lived(time, h->monotonic_zero_ns))
        ns = time - h->monotonic_zero_ns;
    else if (time >= h->scale.ticks_zero && lived(clock_scale_ns(&h->scale, time), 0)) {
        *ticks = time;
        return true;
    } else {
        return false;
    }
    *ticks = ticks_at(&h->scale, ns);
    return true;
}
