/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The time of a device that costs are judged by: without start-up and what was not recorded. A few
 * steps behind a long import are to be judged, too, and the last second of a day, which is all that
 * a flight recorder has, and a step of a training.
 */
#ifndef GPUPROF_COLLECTOR_JUDGED_TIME_H
#define GPUPROF_COLLECTOR_JUDGED_TIME_H

#include "find/finding_kind.h"
#include "find/idle_state.h"

struct judged_time {
    uint64_t window_ns; /* of all that the device had (idle.h) */
    uint64_t aside_ns;  /* of that start-up, and what was not recorded */
    uint64_t whole_ns;  /* what the rest is a part of: of the run, recorded or not */
};

/* After the walk, which idle time is of. */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device);

/* The mean of all but one. */
struct judged_time judged_time_mean(struct judged_time all, struct judged_time but, uint32_t count);

/* How much of the whole is looked at, up to 1: what is little there is as much less of that. */
double judged_part(struct judged_time time);

/* Does it cost more than both thresholds, `of_ns` being what its share is of? */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part);

#endif
