/* SPDX-License-Identifier: Apache-2.0 */
/* For run_make.c: what the devices of a run burnt in a step. */
#ifndef GPUPROF_COLLECTOR_RUN_ENERGY_H
#define GPUPROF_COLLECTOR_RUN_ENERGY_H

#include "diff/run_steps.h"
#include "report/device_report.h"

/*
 * Sets the metric of energy, after the walk: what the devices of each process burnt from its first
 * kept step to its last one, by their number, of those steps that the readings reach; and how many
 * steps these are. A device that several processes read counts once, which changes `devices`, and
 * says what it burnt in the steps of all of them. It stays NAN where a process with steps has no
 * reading. 0 or GPUPROF_NO_MEMORY.
 */
int run_energy_find(struct run_summary *r, const struct run_steps *steps,
                    struct device_report *devices);

#endif
