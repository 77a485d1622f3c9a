/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frozen scale from a process's clock ticks (TSC, CNTVCT, or CLOCK_MONOTONIC nanoseconds) to
 * its nanoseconds: ns = (ticks - ticks_zero) * mult >> CLOCK_SCALE_SHIFT, measured once at start.
 * ANCHOR records tie these nanoseconds to CLOCK_MONOTONIC and CLOCK_REALTIME once a second, so that
 * a reader can correct the scale's small error afterwards.
 */
#ifndef GPUPROF_FORMATS_CLOCK_SCALE_H
#define GPUPROF_FORMATS_CLOCK_SCALE_H

#include <stdint.h>

#define CLOCK_SCALE_SHIFT 32

enum clock_source { CLOCK_SOURCE_MONOTONIC = 0, CLOCK_SOURCE_TSC = 1, CLOCK_SOURCE_CNTVCT = 2 };

struct clock_scale {
    uint32_t source; /* enum clock_source */
    uint64_t ticks_zero;
    uint64_t mult; /* nanoseconds per tick, times 2^32; never 0 */
};

/* Ticks before ticks_zero give 0. */
static inline uint64_t clock_scale_ns(const struct clock_scale *scale, uint64_t ticks)
{
    if (ticks < scale->ticks_zero)
        return 0;
    return (uint64_t)(((unsigned __int128)(ticks - scale->ticks_zero) * scale->mult) >>
                      CLOCK_SCALE_SHIFT);
}

#endif
