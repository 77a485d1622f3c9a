/* SPDX-License-Identifier: Apache-2.0 */
/* A walk (event_walk.h), the slices that it makes of events, and the consumers that get them. */
#ifndef GPUPROF_COLLECTOR_SLICE_H
#define GPUPROF_COLLECTOR_SLICE_H

#include "resolve/crossings.h"
#include "resolve/device_sources.h"
#include "resolve/op_names.h"
#include "resolve/survey.h"
#include "resolve/timeline.h"

enum walk_need {
    WALK_SPANS = 1,   /* `change` and `span`; walk_range, walk_op, walk_op_inputs, walk_library */
    WALK_WORK = 2,    /* `call` of GPU work, synchronisations, overheads and allocations */
    WALK_CALLS = 4,   /* likewise, without the spans around it */
    WALK_STACKS = 8,  /* survey.stacks, at the end */
    WALK_LOSSES = 16, /* counts work without a call, and launches without work */
};

/* Slices that a consumer does not get. */
enum walk_skip {
    WALK_SKIPS_PLAIN_CALLS = 1, /* returned calls that do not concern graphs */
    WALK_SKIPS_CALLS = 3,       /* all returned calls */
    WALK_SKIPS_WORK = 4,        /* GPU work */
    WALK_SKIPS_OTHERS = 8,
};

/* Whether the event stops or resumes recording of its process (its own stop, or run --schedule). */
enum pause_change { PAUSE_SAME, PAUSE_BEGINS, PAUSE_ENDS };

struct walk;
struct slice;

struct time_span {
    uint64_t begin_ns;
    uint64_t end_ns;
};

/* Which slices are shown (selection.h). */
struct walk_filter {
    void *context;
    bool (*has)(void *context, const struct slice *s);
    bool (*has_call)(void *context, const struct slice *s); /* for the call of GPU work */
    timeline_wants_fn *wants;                               /* NULL: all blocks are read */
    /* Whether it selects some of that time of a process (NULL: any time) and device (UINT64_MAX:
     * any). NULL: always. */
    bool (*reaches)(void *context, const struct process *p, uint64_t device, uint64_t begin_ns,
                    uint64_t end_ns);
    /* The first and the last selected moment of the process. */
    struct time_span (*bounds)(void *context, const struct process *p);
    bool is_of_time; /* it limits the time */
    bool is_span;    /* to one span, from from_ns to to_ns */
    bool is_whole;   /* likewise, with everything on selected devices in that span */
    bool is_near;    /* likewise; plain calls and work far from that span are not read */
    uint64_t from_ns;
    uint64_t to_ns;
    const uint8_t *core; /* view, by index entry: all records count; NULL: everywhere */
    /* Of other entries: whether the record counts. */
    bool (*keeps)(void *context, const struct event *e);
    /* Completes a span that ended (UINT64_MAX: not at all): records inside it were left out. */
    void (*restore)(void *context, struct host_span *span, uint64_t end_ns);
    bool leaves_calls; /* calls of work outside the span are not read */
    bool has_work;     /* GPU work may be selected */
    bool asks_calls;   /* `has` looks at the call of work */
    const uint64_t *first_ns,
        *last_ns; /* as struct walk, of a walk without a filter; NULL: this walk's */
};

struct slice {
    struct event event;
    struct walk *walk;
    enum pause_change pause_change;
    enum span_change change; /* of `span` by this event; SPAN_LEFT: at the end, without one */
    struct host_span *span;  /* a view until the next slice; of one that opened, until it closes */
    bool is_called;          /* `call` is known */
    bool is_outside;       /* GPU work without a call outside of all windows: no consumer gets it */
    bool is_filtered;      /* the walk's filter leaves it out */
    bool is_call_filtered; /* and its call; not set for a filtered slice */
    const struct device_source *source; /* for a sample of a device; NULL: none, or not known */
    struct correlated_call call;
};

/* Recording state of a process, by its newest records. */
struct recorded_now {
    bool is_stopped;  /* by the program */
    bool is_held;     /* by gpuprof ctl */
    bool is_closed;   /* no window is open, */
    bool is_warm;     /* but one is about to open, or gpuprof ctl is about to start */
    uint64_t window;  /* number of the open or the last window; 0: none yet */
    uint64_t records; /* records of windows so far */
};

/* Clock noise can place GPU work this long before its call. */
#define AHEAD_NS 1000000u

#define WALK_STOP          1
#define WALK_CONSUMERS_MAX 32

/* A consumer of slices. All functions may be NULL. Each returns 0, or an error to end the walk. */
struct consumer {
    void *context;
    unsigned needs; /* enum walk_need */
    unsigned skips; /* enum walk_skip */
    /* It also gets filtered slices. Others get filtered slices only where they give context:
     * ranges, operators and library calls as they open and close, pauses. A consumer that counts
     * these checks is_filtered. */
    bool sees_filtered;
    /* Gets every slice that is not skipped, in the order of time, then the ranges that are still
     * open. May return WALK_STOP. */
    int (*take)(void *context, const struct slice *s);
    /* Get calls and GPU work, which are most slices, in place of `take`. */
    int (*take_call)(void *context, const struct slice *s);
    int (*take_work)(void *context, const struct slice *s);
    /* Called when the losses are complete. */
    int (*end)(void *context);
};

/* Meaning of the numbers of names in a process. */
struct named_numbers {
    struct kernel_handles handles; /* registered kernels, at this moment of the walk */
    struct kernel_handles kernels; /* of KERNEL_NAME records */
    struct kernel_handles ops;     /* of OP_NAME records */
    struct kernel_handles inputs;  /* bytes of OP_INPUTS records */
};

struct walk {
    struct recording *rec;
    struct losses *losses;       /* owned, by process index: from loading, and from this walk */
    struct named_numbers *names; /* owned, by process index */
    struct kernel_names kernels; /* texts of names, and of ranges */
    struct kernel_names texts;   /* texts of operators */
    struct survey survey;
    bool is_surveyed;
    bool knows_names;                 /* as is_surveyed, for names alone */
    bool by_process;                  /* one process after another, unless ns_max is set */
    const struct walk_filter *filter; /* a view; NULL: everything is shown */
    struct crossings *crossings;      /* a view: collects them; NULL: not needed */
    const char *symbols; /* a view: the folder in which consumers look up names (symbols.h) */
    uint64_t ns_max;     /* maximum duration of a walk; 0: no maximum */
    bool is_cut;         /* a walk reached it */
    uint64_t open_bytes_max;
    struct spans spans;
    struct library_kinds kinds;
    struct device_sources sources;
    uint64_t *op_threads; /* owned, by thread index: PyTorch's thread numbers; 0: not known */
    uint64_t *first_ns;   /* owned, by process index: first event that is shown; 0: none yet */
    uint64_t *last_ns; /* likewise: last moment recorded; with a filter, of the whole recording */
    struct recorded_now *recorded; /* owned, by process index: at this moment of the walk */
};

/* What change of an open or closed span of that type the slice is; SPAN_SAME: none. */
static inline enum span_change slice_change(const struct slice *s, enum span_type type)
{
    return s->change && s->span->type == type ? s->change : SPAN_SAME;
}

/* The innermost open range around a call. */
static inline struct host_span *walk_range(const struct slice *s)
{
    return spans_innermost(&s->walk->spans, s->event.thread, SPAN_RANGE);
}

/* The innermost open operator around a call that does work (op_works). */
static inline const struct host_span *walk_op(const struct slice *s)
{
    return spans_innermost_op(&s->walk->spans, s->event.thread);
}

/* The stack of a call, or else of the operator around it (with WALK_SPANS); 0: none. */
static inline uint32_t walk_stack(const struct slice *s)
{
    uint32_t own = s->event.record->stack_id;
    const struct host_span *op = own ? NULL : spans_with_stack(&s->walk->spans, s->event.thread);
    return op ? op->stack : own;
}

/* The innermost open library call around a call. */
static inline const struct host_span *walk_library(const struct slice *s)
{
    return spans_innermost(&s->walk->spans, s->event.thread, SPAN_LIBRARY);
}

/* The recorded inputs of an operator (op_record.h); NULL: not known. */
static inline const struct kernel_name *walk_op_inputs(const struct walk *w,
                                                       const struct process *p, uint64_t inputs)
{
    return kernel_name_of(&w->names[p->index].inputs, inputs);
}

/* The kernel that a handle in the arguments of a call means now, or NULL. */
static inline const struct kernel_name *walk_handle(const struct slice *s, uint64_t handle)
{
    return kernel_name_of(&s->walk->names[s->event.process->index].handles, handle);
}

#endif
