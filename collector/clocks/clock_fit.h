/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How one clock runs against another, of moments that both have seen: a line through them, or,
 * where they lie on none, a line of several pieces. Some of the moments may have nothing to do with
 * one another: up to a third of them changes nothing, if they are not many in a row that agree.
 *
 * The uncertainty has what one clock may have done where nothing was seen of it, and where it
 * turned between two knots; so it is more than the fit is off, if not by chance.
 */
#ifndef GPUPROF_COLLECTOR_CLOCK_FIT_H
#define GPUPROF_COLLECTOR_CLOCK_FIT_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_KNOTS_MAX 128

/* Both from where their users count, so that they are exact. */
struct clock_sample {
    double at_ns;  /* by the own clock */
    double gap_ns; /* the other one's time less that */
};

struct clock_fit {
    uint32_t count;
    uint32_t used; /* that agree with it */
    uint32_t knot_count;
    struct clock_sample knots[CLOCK_KNOTS_MAX];
    double first_slope; /* before the first knot ... */
    double last_slope;  /* ... and behind the last */
    double spread_ns;   /* one standard deviation of those that agree */
    double jump_ns;     /* by how much some in a row are off that agree with one another; or 0 */
    double
        uncertainty_ns; /* of the gap, where it is least certain in the time that was asked for */
};

/*
 * Fits `count` samples, at least one, which are sorted by that; for times from `from_ns` to
 * `to_ns`. 0 or GPUPROF_NO_MEMORY.
 */
int clock_fit_make(struct clock_fit *f, struct clock_sample *samples, uint32_t count,
                   double from_ns, double to_ns);

/* Can these be two clocks that have seen the same? */
bool clock_fit_is_sane(const struct clock_fit *f);

/* If not: because one of them was set, or stood still for a while? */
bool clock_fit_jumps(const struct clock_fit *f);

double clock_fit_gap(const struct clock_fit *f, double at_ns);

#endif
