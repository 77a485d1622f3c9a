/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of a program, PyTorch's labels among them, projected on the streams of its devices: from
 * the first work that was launched inside a range to the end of the last. Work is given in the
 * order of its begin; a range is told when work comes that its thread launched on that stream
 * outside of it: a stream does work in the order of its launches. So a stack for each thread on a
 * stream is all that is kept, however many ranges there are. Ranges of different threads on one
 * stream overlap as they like, and each thread has a lane of its own there; beyond
 * PROJECTION_LANES_MAX threads share one, whose ranges are told in parts.
 */
#ifndef GPUPROF_COLLECTOR_PROJECTION_H
#define GPUPROF_COLLECTOR_PROJECTION_H

#include "base/key_map.h"
#include "resolve/survey.h"

#define PROJECTION_DEPTH_MAX 64 /* ranges around one piece of work */
#define PROJECTION_LANES_MAX 32
#define PROJECTIONS_MAX      16384

struct projected_range {
    uint32_t sequence;              /* struct range, or a label's number, struct op */
    const struct kernel_name *text; /* NULL: it has none */
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* The ranges around the last work of a thread on a stream, the outermost first. */
struct projection {
    struct process *process;
    uint64_t device;
    uint64_t stream;
    uint32_t thread;    /* struct thread index: of the first that is in this lane */
    uint32_t lane;      /* number among those of its stream, from 0 on */
    uint32_t innermost; /* numbers (survey.h) of the range that the last work was launched in ... */
    uint32_t label;     /* ... and of the label; 0 = none */
    uint32_t count;
    uint64_t valid_until_ns; /* a call that begins before is in the same ranges */
    uint64_t free_from_ns;   /* behind what was told last */
    struct projected_range open[PROJECTION_DEPTH_MAX];
};

/*
 * Takes a range that is complete; inner ones come before outer ones, begin later than those and end
 * earlier, and neighbours are 1 ns apart. 0 or an error, which ends the projecting.
 */
typedef int projection_fn(void *context, const struct projection *p,
                          const struct projected_range *range);

struct projections {
    struct survey *survey;
    projection_fn *tell;
    void *context;
    struct key_map places;    /* (thread, device, stream) -> place + 1 */
    struct key_map lanes;     /* (process, device, stream) -> place of the last lane + 1 */
    struct projection **list; /* owned, and so are they */
    uint32_t count;
};

void projections_init(struct projections *s, struct survey *survey, projection_fn *tell,
                      void *context);
void projections_release(struct projections *s);

/*
 * Work on a stream that `call` launched (NULL: not known, and so in no range). Times may be
 * relative to anything. 0, GPUPROF_NO_MEMORY, GPUPROF_IO, or what `tell` returned.
 */
int projections_add(struct projections *s, struct process *process, uint64_t device,
                    uint64_t stream, uint64_t begin_ns, uint64_t end_ns,
                    const struct correlated_call *call);

/* Tells what is still open. */
int projections_end(struct projections *s);

#endif
