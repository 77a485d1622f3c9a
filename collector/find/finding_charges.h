/* SPDX-License-Identifier: Apache-2.0 */
/* Which finding the time of a device is charged to: its work by finding_gpu.h, idle time by cause.
 */
#ifndef GPUPROF_COLLECTOR_FINDING_CHARGES_H
#define GPUPROF_COLLECTOR_FINDING_CHARGES_H

#include "find/finding.h"

/* What a device waited for: in how many gaps, and in how many of them behind a wait (IDLE_AFTER);
 * how long in calls that never returned, which are none too many; and, of IDLE_NOTHING, how long
 * between calls. */
struct finding_gaps {
    uint64_t counts[2][IDLE_CAUSES];
    uint64_t open_ns[IDLE_CAUSES];
    uint64_t between_ns;
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
