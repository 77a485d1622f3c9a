/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one run (run_summary.h) from a recording with all its processes. Its steps are the complete
 * ones of steps.h without a warm-up (run_steps.c). A call belongs to the step in which it begins,
 * GPU work to the step of its call, busy time to the step in which it passes. A run without steps
 * counts as one step.
 *
 * Memory: that of the steps (steps.h) and 96 bytes more for each; 100 bytes for each kernel and
 * place. After RUN_KERNELS_MAX of these, further ones lose their place, or are left out.
 */
#ifndef GPUPROF_COLLECTOR_RUN_MAKE_H
#define GPUPROF_COLLECTOR_RUN_MAKE_H

#include "base/key_map.h"
#include "diff/run_summary.h"
#include "resolve/steps.h"

/* ---- run_steps.c: sums for each step of a run (run_metrics.def), in a walk after its survey -- */

struct run_step {
    uint64_t values[RUN_METRICS];
    bool is_kept; /* complete, and not part of the warm-up */
};

/* A device that did work for a process. */
struct run_device {
    uint32_t process;
    uint64_t device;
    uint64_t until_ns; /* end of all work so far */
};

struct run_steps {
    struct walk *walk;
    struct steps steps;
    struct run_step *list; /* owned, parallel to steps.list */
    bool is_whole;         /* no steps: each process counts as one */
    uint32_t kept;
    uint32_t warm_up;
    struct run_device *devices; /* owned */
    uint32_t device_count;
    struct key_map device_places; /* process, device -> place + 1 */
};

/* Finds the steps of `walk`, which must stay valid. EXIT_OK, or another exit code after one line on
 * stderr if no requested step is complete. Call run_steps_release in both cases. */
enum exit_code run_steps_find(struct run_steps *r, struct walk *walk,
                              const struct run_reading *how);
void run_steps_release(struct run_steps *r);

/* Sums up events, after run_steps_find; a consumer's `take` with WALK_WORK. Kernels are left to
 * run_make.c. */
int run_steps_take(void *steps, const struct slice *s);

/* Returns the kept step of the process at that time; NULL: none. */
struct run_step *run_step_at(const struct run_steps *r, const struct process *p, uint64_t ns);

/* Sets the metrics that come from steps, after the walk. */
void run_steps_metrics(struct run_steps *r, double metrics[RUN_METRICS]);

#endif
