/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The hooks' clock: the raw counter of the processor where its rate is invariant, else
 * CLOCK_MONOTONIC. The scale to nanoseconds is frozen once per process (formats/clock_scale.h).
 */
#ifndef GPUPROF_INJECT_TICKS_H
#define GPUPROF_INJECT_TICKS_H

#include <stdint.h>
#include <time.h>

#include "base/compiler.h"
#include "clock_scale.h"

/* The constructor chooses the clock. The start of each recording fills the scale and the zero
 * times. All threads read it. */
struct process_clock {
    uint32_t source; /* enum clock_source */
    struct clock_scale scale;
    uint64_t load_ticks; /* samples that the constructor took, for the scale */
    uint64_t load_monotonic_ns;
    uint64_t monotonic_zero_ns;
    uint64_t realtime_zero_ns;
};

extern HIDDEN struct process_clock process_clock;

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The processor's counter. Only valid if it is the chosen clock. */
static inline uint64_t ticks_raw(void)
{
    uint64_t ticks;
#if defined(__x86_64__)
    ticks = __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
#else
    ticks = clock_ns(CLOCK_MONOTONIC);
#endif
    return ticks;
}

static inline uint64_t ticks_now(void)
{
    return process_clock.source == CLOCK_SOURCE_MONOTONIC ? clock_ns(CLOCK_MONOTONIC) : ticks_raw();
}

/* Chooses the clock and takes the first sample; called from the constructor. */
void ticks_load(void);

/*
 * Computes the scale and the zero times of process_clock from the first sample and a new one. Takes
 * up to 2 ms if the process is younger than that: with a shorter base line the scale would be too
 * coarse.
 */
void ticks_calibrate(void);

/* Reads ticks and CLOCK_MONOTONIC at one moment, the closest pair of three tries. */
void ticks_sample(uint64_t *ticks, uint64_t *monotonic_ns);

#endif
