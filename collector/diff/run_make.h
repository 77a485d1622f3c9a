/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes a recording one run (run_summary.h): all its processes together. Its steps are those of
 * steps.h that are whole, without a warm-up (run_steps.c). Calls belong to the step in which they
 * begin, work of a device to that of its call, busy times to when they were. A run without steps is
 * one step as a whole.
 *
 * Memory: that of the steps (steps.h) and 96 bytes more for each; 100 bytes for each kernel and
 * place, RUN_KERNELS_MAX at most: what comes then has no place, or no row.
 */
#ifndef GPUPROF_COLLECTOR_RUN_MAKE_H
#define GPUPROF_COLLECTOR_RUN_MAKE_H

#include "analyse/device_report.h"
#include "diff/run_steps.h"

/* Reads all events of `rec`. EXIT_OK, or another exit code after one line on stderr;
 * run_summary_release in both cases. */
enum exit_code run_summary_make(struct run_summary *r, struct recording *rec,
                                const struct run_wish *wish);

/* (run_provenance.c) Sets what is to be known of a run beside its numbers (run_facts.def), and what
 * gpuprof itself cost, after the walk. 0 or GPUPROF_NO_MEMORY. */
int run_provenance_find(struct run_summary *r, const struct run_steps *steps,
                        const struct device_report *devices);

#endif
