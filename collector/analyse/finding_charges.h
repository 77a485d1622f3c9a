/* SPDX-License-Identifier: Apache-2.0 */
/* Charges a device's time to findings: work by finding_gpu.h, idle time by its cause. */
#ifndef GPUPROF_COLLECTOR_FINDING_CHARGES_H
#define GPUPROF_COLLECTOR_FINDING_CHARGES_H

#include "analyse/finding.h"
#include "analyse/finding_gpu.h"
#include "analyse/idle_state.h"

/*
 * The time of a device that costs are compared with: without start-up and without time that was not
 * recorded. That also suits a few steps after a long import, the last second of a flight recorder,
 * and a single training step.
 */
struct judged_time {
    uint64_t window_ns; /* total time of the device (idle.h) */
    uint64_t aside_ns;  /* start-up and unrecorded time in it */
    uint64_t whole_ns;  /* the whole run that the rest is a part of, recorded or not */
};

/* Call it after the walk that measured idle time. */
struct judged_time judged_time_of(const struct walk *walk, const struct idle_device *device);

/* The mean of `count` devices: all without one. */
struct judged_time judged_time_mean(struct judged_time all, struct judged_time but, uint32_t count);

/* The share of the whole that was looked at, up to 1. Thresholds shrink with it. */
double judged_part(struct judged_time time);

/* Is the cost above both thresholds of the kind? `of_ns` is the base of its share. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part);

/* Counts what a device waited for: gaps by cause, and those after a wait (IDLE_AFTER) apart; time
 * in calls that never returned, which is nobody's cost; and time between calls (IDLE_NOTHING). */
struct finding_gaps {
    uint64_t counts[2][IDLE_CAUSES];
    uint64_t open_ns[IDLE_CAUSES];
    uint64_t between_ns;
    /* Time that moves between findings because it is known what the thread did. Added to their
     * costs; [1] is data loading. */
    int64_t moved_ns[2][FINDING_KINDS];
};

/* Counts the gaps of all devices, in new memory; NULL: no memory. */
struct finding_gaps *finding_gaps_count(const struct findings *f);

/* Sets the cost of each kind for the device at `place` of idle.h, from its gaps. */
void finding_charges(const struct findings *f, uint32_t place, const struct finding_gaps *gaps,
                     uint64_t ns[static FINDING_KINDS]);

/* The work of the device at `place`; NULL: not known. Devices beyond FOUND_DEVICES_MAX share one,
 * which counts for none. */
const struct found_device *finding_worked(const struct findings *f, uint32_t place);

/* Is the idle time of that row charged to that kind? */
bool finding_is_charged(const struct findings *f, enum finding_id id, const struct idle_row *row);

#endif
