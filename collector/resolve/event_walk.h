/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk through all events of a recording in the order of time, for any number of consumers.
 * Each event is assembled to a slice once: a call with the ranges around it, work of a device with
 * the call that made it, a range with its begin. What no consumer needs is not assembled.
 *
 * Names of kernels and operators may stand behind their first use: they are read before, from the
 * few blocks that have them. Stacks, devices and pauses are learnt on the way, and known at the
 * end; who writes as it goes has the recording surveyed first. Reading changes no recording:
 * losses, names and what was learnt belong to the walk.
 *
 * Memory: timeline.h, look_ahead.h, survey.h, range_stack.h, op_stack.h, library_calls.h and
 * kernel_names.h say what bounds theirs.
 *
 * Ranges of PyTorch's emit_nvtx are operators, and no ranges, for those who need operators or not.
 */
#ifndef GPUPROF_COLLECTOR_EVENT_WALK_H
#define GPUPROF_COLLECTOR_EVENT_WALK_H

#include "base/message.h"
#include "resolve/slice.h"

/* `rec` must stay. 0 or GPUPROF_NO_MEMORY; walk_release in both cases. */
int walk_init(struct walk *w, struct recording *rec);
void walk_release(struct walk *w);

/*
 * Learns what may stand behind its first use, from the few blocks that have it: names, devices,
 * stacks, pauses, and when the recording began. Who writes as it goes cannot do without; others
 * learn it on their way. 0, or an error after one line on stderr.
 */
int walk_survey(struct walk *w);

/* The same, and of each process when its first event began and its last ended. */
int walk_survey_around(struct walk *w);

/*
 * Tells consumers, at most WALK_CONSUMERS_MAX, of the events of `only` (NULL: of all processes),
 * whose losses then are those of this walk. 0; WALK_STOP if a consumer has stopped it; or an error
 * after one line on stderr.
 */
int walk_run(struct walk *w, const struct process *only, const struct consumer *consumers,
             unsigned count);

/* What it has found out of a process of its share, for the walk that it is a part of. */
struct walk_found {
    struct losses losses;
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t kernels_dropped; /* these two of the whole share */
    uint64_t texts_dropped;
};
struct walk_found walk_found(const struct walk *w, const struct process *p);
void walk_add_found(struct walk *w, const struct process *p, const struct walk_found *found);

/* recording_verdict of what was walked through. */
enum exit_code walk_verdict(const struct walk *w, bool strict);

/* The kernel that a KERNEL record names by that number, or NULL. */
const struct kernel_name *walk_kernel(const struct walk *w, const struct process *p,
                                      uint64_t number);

/* Until when a process is known to have been there, after the walk or at its end. */
uint64_t walk_lived_ns(const struct walk *w, const struct process *p);

/* The kernel that a call launches; NULL: none, or it has no name. A name is known only while its
 * handle means it: as the events go by. */
const struct kernel_name *walk_launched(const struct slice *s);

#endif
