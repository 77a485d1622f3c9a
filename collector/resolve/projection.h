/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects ranges of a program, and PyTorch's labels, on the streams of its devices: from the first
 * work that was launched inside a range to the end of the last. Work is added in the order of its
 * begin. A range is complete when its thread's next work on that stream was launched outside it,
 * since a stream runs work in launch order. So only a stack for each thread and stream is stored,
 * for any number of ranges. Each thread has a lane of its own on a stream, as ranges of different
 * threads may overlap.
 */
#ifndef GPUPROF_COLLECTOR_PROJECTION_H
#define GPUPROF_COLLECTOR_PROJECTION_H

#include "base/key_map.h"
#include "resolve/survey.h"

#define PROJECTION_DEPTH_MAX 64 /* ranges around one GPU record */
#define PROJECTIONS_MAX      16384

struct projected_range {
    uint32_t sequence;              /* number of the range or label (struct host_span) */
    const struct kernel_name *text; /* NULL: none */
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* The ranges around the last work of a thread on a stream, outermost first. */
struct projection {
    struct process *process;
    uint64_t device;
    uint64_t stream;
    uint32_t thread; /* struct thread index */
    uint32_t lane;   /* number of the lane on its stream, from 0 on */
    uint32_t count;
    uint64_t free_from_ns; /* after the last reported range */
    struct projected_range open[PROJECTION_DEPTH_MAX];
};

/* Takes a complete range. Inner ranges come first, begin later and end earlier than outer ones;
 * neighbours are 1 ns apart. */
typedef void projection_fn(void *context, const struct projection *p,
                           const struct projected_range *range);

/* The caller sets the first three; the rest begins with zeros. */
struct projections {
    struct survey *survey;
    projection_fn *notify;
    void *context;
    struct key_map places;   /* (thread, device, stream) -> place + 1 */
    struct projection *list; /* owned */
    uint32_t count;
};

void projections_release(struct projections *s);

/*
 * Adds work on a stream that `call` launched (NULL: not known, so in no range). Times may have any
 * origin.
 */
void projections_add(struct projections *s, struct process *process, uint64_t device,
                     uint64_t stream, uint64_t begin_ns, uint64_t end_ns,
                     const struct correlated_call *call);

/* Reports the ranges that are still open. */
void projections_end(struct projections *s);

#endif
