/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The finding that a device was slowed down: what it cost is how much longer the steps were in
 * which it was than those in which it was not, of the same process. Said only where both are many,
 * and nearly all of the former are longer than nearly all of the latter: else nobody knows whether
 * it was that.
 */
#ifndef GPUPROF_COLLECTOR_THROTTLE_FINDING_H
#define GPUPROF_COLLECTOR_THROTTLE_FINDING_H

#include "analyse/device_report.h"
#include "find/findings.h"
#include "model/steps.h"

/* Adds it to `f`, which is complete but for that and the memory's. `steps`: NULL: there are none.
 * 0 or GPUPROF_NO_MEMORY. */
int throttle_finding_add(struct findings *f, const struct device_report *r,
                         const struct steps *steps);

#endif
