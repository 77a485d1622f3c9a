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

/* The share of the whole that was looked at, up to 1. Thresholds shrink with it. */
double judged_part(struct judged_time time);

/* Is the cost above both thresholds of the kind? `of_ns` is the base of its share. */
bool judged_worth_it(const struct finding_kind *kind, uint64_t ns, uint64_t of_ns, double part);

/* What each kind costs a device. The rest is for finding_charges.c. */
struct finding_costs {
    int64_t ns[FINDING_KINDS];     /* never negative */
    uint64_t gaps[2][IDLE_CAUSES]; /* by cause, and those after a wait (IDLE_AFTER) apart */
    bool is_blocking;              /* each launch waits */
};

/* The costs of all devices of idle.h, in new memory; NULL: no memory. */
struct finding_costs *finding_costs_make(const struct findings *f);

/* The work of the device at `place`; NULL: not known. */
const struct found_device *finding_worked(const struct findings *f, uint32_t place);

/* Is the idle time of that row charged to that kind? */
bool finding_is_charged(const struct findings *f, enum finding_id id, const struct idle_row *row);

#endif
