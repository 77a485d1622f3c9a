/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One walk through all events of a recording in the order of time, for any number of consumers.
 * Each event is made into a slice once: a call with the ranges around it, GPU work with its call, a
 * range with its begin. Parts that no consumer needs are left out.
 *
 * Records of names of kernels and operators may follow their first use, so the few blocks that hold
 * them are read first. Stacks, devices and pauses are learnt during the walk and complete at the
 * end; a consumer that writes during the walk surveys the recording first. Reading changes no
 * recording: losses, names and everything learnt belong to the walk.
 *
 * Memory: bounded by timeline.h, walk_slices.h, survey.h, spans.h, library_calls.h and
 * kernel_names.h.
 *
 * Ranges of PyTorch's emit_nvtx always count as operators, not as ranges.
 */
#ifndef GPUPROF_COLLECTOR_EVENT_WALK_H
#define GPUPROF_COLLECTOR_EVENT_WALK_H

#include "base/message.h"
#include "resolve/slice.h"

/* `rec` must stay. */
void walk_init(struct walk *w, struct recording *rec);
void walk_release(struct walk *w);

/*
 * Learns what may be recorded after its first use: names, devices, stacks, pauses, and the time of
 * each process's first begin and last end. It reads only the few blocks that hold these. Consumers
 * that write during the walk need it; others learn it on the way. Returns 0, or an error after one
 * line on stderr.
 */
int walk_survey(struct walk *w);

/*
 * Passes the events of `only` (NULL: of all processes) to the consumers, at most
 * WALK_CONSUMERS_MAX. The losses of these processes are then those of this walk. Returns 0;
 * WALK_STOP if a consumer stopped it; or an error after one line on stderr.
 */
int walk_run(struct walk *w, const struct process *only, const struct consumer *consumers,
             unsigned count);

/* Findings of a worker's walk on a process, for the walk that it is a part of. */
struct walk_found {
    struct losses losses;
    uint64_t first_ns;
    uint64_t last_ns;
    uint64_t kernels_dropped; /* of all processes of the worker, like texts_dropped */
    uint64_t texts_dropped;
};
struct walk_found walk_found(const struct walk *w, const struct process *p);
void walk_add_found(struct walk *w, const struct process *p, const struct walk_found *found);

/* The recording_verdict for what was walked through. */
enum exit_code walk_verdict(const struct walk *w, bool strict);

/* Whether calls of the process may be lost: blocks are damaged or missing, or records were dropped.
 * Then a call that is not found proves nothing. */
bool walk_may_lack_calls(const struct walk *w, const struct process *p);

/* The kernel of that number in a KERNEL record, or NULL. */
const struct kernel_name *walk_kernel(const struct walk *w, const struct process *p,
                                      uint64_t number);

/* The last moment at which the process is known to have run, at the end of the walk. */
uint64_t walk_lived_ns(const struct walk *w, const struct process *p);

/* The kernel that a call launches; NULL: none, or no name. Call it during the walk: a handle has a
 * name only while it is valid. */
const struct kernel_name *walk_launched(const struct slice *s);

/* The collective of a kernel: by the NCCL call that launched it (library_calls.h) or, if those are
 * not recorded, by NCCL's range around the launch (nccl_call.h). */
struct collective {
    uint64_t communicator; /* 0: nothing is known */
    uint64_t number;       /* on it; 0: not known, or not the first kernel of its call */
    uint32_t ranks;        /* size of the communicator; 0: not known */
    bool is_rooted;
};

/* For a kernel, in a walk with WALK_WORK. */
void collective_of(const struct slice *s, struct collective *what);

#endif
