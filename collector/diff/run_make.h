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
#include "base/key_map.h"
#include "diff/run_summary.h"
#include "resolve/steps.h"

/* ---- run_steps.c: what is summed up for each step of a run (run_metrics.def), event by event, of
 * a walk that has been surveyed ---- */

struct run_step {
    uint64_t values[RUN_METRICS];
    bool is_kept; /* it is whole, and no warm-up */
};

/* A device of a process that did something. */
struct run_device {
    uint32_t process;
    uint64_t device;
    uint64_t until_ns; /* of all that has begun */
};

struct run_steps {
    struct walk *walk;
    struct steps steps;
    struct run_step *list; /* owned, as steps.list */
    bool is_whole;         /* there are none: each process is one */
    uint32_t kept;
    uint32_t warm_up;
    struct run_device *devices; /* owned */
    uint32_t device_count;
    struct key_map device_places; /* process, device -> place + 1 */
};

/* Finds the steps of `walk`, which must stay. EXIT_OK, or another exit code after one line on
 * stderr: of those that were asked for none is there, or whole. run_steps_release in both cases. */
enum exit_code run_steps_find(struct run_steps *r, struct walk *walk,
                              const struct run_request *request);
void run_steps_release(struct run_steps *r);

/* After that: sums up. */
struct consumer run_steps_consumer(struct run_steps *r);

/* The step that is kept and has that moment of the process; NULL: there is none. */
struct run_step *run_step_at(const struct run_steps *r, const struct process *p, uint64_t ns);

/* After the walk: sets the metrics that come from steps. 0 or GPUPROF_NO_MEMORY. */
int run_steps_metrics(struct run_steps *r, double metrics[RUN_METRICS]);

/* (run_provenance.c) Sets what is to be known of a run beside its numbers (run_facts.def), and what
 * gpuprof itself cost, after the walk. 0 or GPUPROF_NO_MEMORY. */
int run_provenance_find(struct run_summary *r, const struct run_steps *steps,
                        const struct device_report *devices);

#endif
