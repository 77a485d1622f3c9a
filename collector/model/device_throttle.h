/* SPDX-License-Identifier: Apache-2.0 */
/* Why a device was slower than it could be, and for how long between two readings. */
#ifndef GPUPROF_COLLECTOR_DEVICE_THROTTLE_H
#define GPUPROF_COLLECTOR_DEVICE_THROTTLE_H

#include "model/device_sources.h"

enum throttle { THROTTLE_POWER, THROTTLE_THERMAL, THROTTLE_BRAKE, THROTTLE_SYNC, THROTTLES };

extern const char *const throttle_words[THROTTLES];

enum throttle_known { THROTTLE_UNKNOWN, THROTTLE_COUNTED, THROTTLE_SAMPLED };

/*
 * How long each reason slowed the device down between a DEVICE_CLOCKS record and the one before,
 * which was read at *since_ns. By counters; where there are none, what a reading says holds halfway
 * to its neighbours, and that is THROTTLE_SAMPLED.
 */
enum throttle_known device_throttle(const struct device_source *source, const struct event *e,
                                    uint64_t ns[static THROTTLES], uint64_t *since_ns);

#endif
