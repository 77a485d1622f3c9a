/* SPDX-License-Identifier: Apache-2.0 */
/* For run_make.c: what is to be known of a run beside its numbers (run_facts.def). */
#ifndef GPUPROF_COLLECTOR_RUN_PROVENANCE_H
#define GPUPROF_COLLECTOR_RUN_PROVENANCE_H

#include "diff/run_steps.h"
#include "report/device_report.h"

/* Sets them, and what gpuprof itself cost, after the walk. 0 or GPUPROF_NO_MEMORY. */
int run_provenance_find(struct run_summary *r, const struct run_steps *steps,
                        const struct device_report *devices);

#endif
