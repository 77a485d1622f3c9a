/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fits how one clock runs against another, from moments seen by both: a line, or, if that does not
 * fit, a line of several pieces. Up to a third of the samples may be unrelated without an effect.
 * The uncertainty includes what a clock may have done unobserved, and its turns between knots, so
 * it normally exceeds the fit's error.
 */
#ifndef GPUPROF_COLLECTOR_CLOCK_FIT_H
#define GPUPROF_COLLECTOR_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_KNOTS_MAX 128

/* Both relative to an origin of the caller's, so that doubles are exact. */
struct clock_sample {
    double at_ns;  /* time of the own clock */
    double gap_ns; /* the other clock's time minus that */
};

struct clock_fit {
    uint32_t count;
    uint32_t used; /* samples that agree with the fit */
    uint32_t knot_count;
    struct clock_sample knots[CLOCK_KNOTS_MAX];
    double first_slope;    /* before the first knot ... */
    double last_slope;     /* ... and after the last */
    double spread_ns;      /* standard deviation of the samples that agree */
    double jump_ns;        /* size of a jump of the clock; or 0 */
    double uncertainty_ns; /* of the gap, at the least certain point of the requested time */
};

/* Fits `count` samples, at least one, for times from `from_ns` to `to_ns`; the samples are sorted
 * by at_ns. */
void clock_fit_make(struct clock_fit *f, struct clock_sample *samples, uint32_t count,
                    double from_ns, double to_ns);

/* Returns true if the samples can come from two clocks that saw the same moments. */
bool clock_fit_is_sane(const struct clock_fit *f);

double clock_fit_gap(const struct clock_fit *f, double at_ns);

#endif
