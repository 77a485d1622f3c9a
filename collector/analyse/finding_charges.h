/* SPDX-License-Identifier: Apache-2.0 */
/* Which finding the time of a device is charged to: its work by finding_gpu.h, idle time by cause.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_CHARGES_H
#define GPUPROF_COLLECTOR_FINDING_CHARGES_H

#include "analyse/finding.h"
#include "analyse/finding_gpu.h"
#include "analyse/idle_state.h"

/*
 * The time of a device that costs are judged by: without start-up and what was not recorded. A few
 * steps behind a long import are to be judged, too, and the last second of a day, which is all that
 * a flight recorder has, and a step of a training.
 */
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

/* What a device waited for: in how many gaps, and in how many of them behind a wait (IDLE_AFTER);
 * how long in calls that never returned, which are none too many; and, of IDLE_NOTHING, how long
 * between calls. */
struct finding_gaps {
    uint64_t counts[2][IDLE_CAUSES];
    uint64_t open_ns[IDLE_CAUSES];
    uint64_t between_ns;
    /* What is another finding's than its cause's, since it is known what the thread did: added to
     * what these cost. Of data loading apart. */
    int64_t moved_ns[2][FINDING_KINDS];
};

/* One for each device, in new memory. NULL: there is none. */
struct finding_gaps *finding_gaps_count(const struct findings *f);

/* What each kind costs the device at that place of idle.h's, whose gaps these are. */
void finding_charges(const struct findings *f, uint32_t place, const struct finding_gaps *gaps,
                     uint64_t ns[static FINDING_KINDS]);

/* The work of the device at that place; NULL: nothing is known of its own. Both have met the same
 * work in the same order; FOUND_DEVICES_MAX are fewer, and share one then. */
const struct found_device *finding_worked(const struct findings *f, uint32_t place);

/* Is the idle time of that row charged to that kind? */
bool finding_is_charged(const struct findings *f, enum finding_id id, const struct idle_row *row);

#endif
