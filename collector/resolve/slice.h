/* SPDX-License-Identifier: Apache-2.0 */
/* A walk (event_walk.h), the slices that it makes of events, and the consumers that it tells. */
#ifndef GPUPROF_COLLECTOR_SLICE_H
#define GPUPROF_COLLECTOR_SLICE_H

#include "resolve/device_sources.h"
#include "resolve/range_stack.h"
#include "resolve/survey.h"
#include "resolve/timeline.h"

enum walk_need {
    WALK_RANGES = 1, /* `change` and `range`; walk_range */
    WALK_WORK = 2,  /* `call` of work of a device, of synchronisations, overheads and allocations */
    WALK_CALLS = 4, /* likewise, but for what is around the call: ranges, operators, libraries */
    WALK_STACKS = 8,     /* survey.stacks, at the end */
    WALK_LOSSES = 16,    /* work without a call and launches without work are counted */
    WALK_OPS = 32,       /* `op_change` and `op`; `call.op`; walk_op, walk_op_inputs */
    WALK_LIBRARIES = 64, /* `library_change` and `library`; `call.library`; walk_library */
    WALK_PAUSES = 256,   /* survey.pauses, at the end */
    WALK_NAMES = 512,    /* walk_kernel, as most others have it */
};

/* Slices that a consumer is not told of: most are of a kind that not all of them need. */
enum walk_skip {
    WALK_SKIPS_PLAIN_CALLS = 1, /* that have returned, and have nothing to do with graphs */
    WALK_SKIPS_CALLS = 3,       /* all that have returned */
    WALK_SKIPS_WORK = 4,        /* of devices */
    WALK_SKIPS_OTHERS = 8,
};

/* What the event did to whether its process records: its own stop, or no window (run --schedule).
 */
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
    bool (*has_call)(void *context, const struct slice *s); /* the call of work */
    /* Before a walk, which `ties` work to its calls or not; NULL: nothing is to be done. 0 or an
     * error. */
    int (*begin)(void *context, bool ties);
    timeline_wants_fn *wants; /* NULL: all blocks are read */
    /* Is that time of a process (NULL: any time), and of a device (UINT64_MAX: of any), in it?
     * NULL: all is. */
    bool (*reaches)(void *context, const struct process *p, uint64_t device, uint64_t begin_ns,
                    uint64_t end_ns);
    /* From when to when the process's time in it is, with what is between parts of it. */
    struct time_span (*bounds)(void *context, const struct process *p);
    bool is_of_time; /* not all the time of a process is in it */
    bool is_span;    /* but one piece, from from_ns to to_ns */
    bool is_whole;   /* likewise, with all that happened then on devices that are wanted */
    uint64_t from_ns;
    uint64_t to_ns;
    bool leaves_calls;                  /* of work that is not in the span calls are not read */
    bool has_work;                      /* work of devices may be */
    bool asks_calls;                    /* has asks where the call of work is */
    const uint64_t *first_ns, *last_ns; /* as a walk's, where all is read; NULL: this one does */
};

struct slice {
    struct event event;
    struct walk *walk;
    enum pause_change pause_change;
    enum range_change change; /* what the event did to `range`; RANGE_LEFT: no event, the end */
    bool is_called;           /* `call` is known */
    bool is_outside;          /* work of no call and no window: nobody is told of it */
    bool is_hidden;           /* the walk's filter has it not */
    bool is_call_hidden;      /* nor its call; of what is hidden nobody asks */
    struct range *range;      /* a view until the next slice; of one that opened, until it closes */
    enum op_change op_change; /* likewise of `op` */
    struct op *op;
    const struct op *replaced;          /* that was open, and whose end is missing; NULL: none */
    enum library_change library_change; /* likewise of `library` */
    struct library_call *library;
    const struct device_source *source; /* of a sample of a device; NULL: none, or not known */
    struct correlated_call call;
};

/* What the newest records of a process say of that. */
struct recorded_now {
    bool is_stopped;  /* by the program */
    bool is_held;     /* by gpuprof ctl */
    bool is_closed;   /* no window is open, */
    bool is_warm;     /* but one is about to, or a start by gpuprof ctl */
    uint64_t window;  /* the number of the one that is or was open; 0: none yet */
    uint64_t records; /* of windows, so far */
};

#define WALK_STOP          1
#define WALK_CONSUMERS_MAX 32

/* All may be NULL. Each returns 0 or an error, which ends the walk. */
struct consumer {
    void *context;
    unsigned needs; /* enum walk_need */
    unsigned skips; /* enum walk_skip */
    /* It is told of slices that are hidden, too. Others are only of those that say what is around
     * others: ranges, operators and calls of libraries as they open and close, pauses; who counts
     * these looks at is_hidden. */
    bool sees_hidden;
    /* Every slice that is not skipped in the order of time; then the ranges that are still open. Or
     * WALK_STOP. */
    int (*take)(void *context, const struct slice *s);
    /* If they are there in place of `take`: of calls, and of work of devices; most are these. */
    int (*take_call)(void *context, const struct slice *s);
    int (*take_work)(void *context, const struct slice *s);
    /* The losses are complete. */
    int (*end)(void *context);
};

/* What the names of a process mean. */
struct named_numbers {
    struct kernel_handles handles; /* of registered kernels, at this moment of the walk */
    struct kernel_handles kernels; /* of KERNEL_NAME records */
    struct op_numbers ops;         /* of OP_NAME and OP_INPUTS records */
};

struct walk {
    struct recording *rec;
    struct losses *losses; /* owned, by process index: of loading, and what the walk has met */
    struct named_numbers *names; /* owned, by process index */
    struct kernel_names kernels; /* texts of names, and of ranges */
    struct kernel_names texts;   /* and what is recorded of operators */
    struct survey survey;
    bool is_surveyed;
    bool knows_pauses;                /* as is_surveyed, of these alone */
    bool knows_names;                 /* likewise */
    const struct walk_filter *filter; /* a view; NULL: everything is shown */
    const char *symbols;              /* a view: where consumers look names up (symbols.h) */
    uint64_t ns_max;                  /* each walk ends early after so long; 0: it does not */
    bool is_cut;                      /* one has */
    uint64_t open_bytes_max;
    struct ranges ranges;
    struct ops ops;
    struct library_kinds kinds;
    struct library_calls libraries;
    struct device_sources sources;
    uint64_t *op_threads; /* owned, by thread index: PyTorch's numbers of threads; 0: not known */
    uint64_t *first_ns;   /* owned, by process index: of its first event that shows; 0: none yet */
    uint64_t *last_ns; /* likewise: until when it recorded anything; with a filter, of the whole */
    struct recorded_now *recorded; /* owned, by process index: at this moment of the walk */
};

/* The innermost range that is open around a call; `nested`: of push and pop only. */
static inline struct range *walk_range(const struct slice *s, bool nested)
{
    return ranges_innermost(&s->walk->ranges, s->event.thread, nested);
}

/* The innermost operator that does something and is open around a call. */
static inline const struct op *walk_op(const struct slice *s)
{
    return ops_innermost(&s->walk->ops, s->event.thread);
}

/* The stack of a call, or else of the operator that it was made in (with WALK_OPS); 0: none. */
static inline uint32_t walk_stack(const struct slice *s)
{
    uint32_t own = s->event.record->stack_id;
    return own ? own : ops_stack_around(&s->walk->ops, s->event.thread);
}

/* The innermost call of a library that is open around a call. */
static inline const struct library_call *walk_library(const struct slice *s)
{
    return library_innermost(&s->walk->libraries, s->event.thread);
}

/* What an operator was called with, as it is recorded (op_record.h); NULL: not known. */
static inline const struct kernel_name *walk_op_inputs(const struct walk *w,
                                                       const struct process *p, uint64_t inputs)
{
    return kernel_name_of(&w->names[p->index].ops.inputs, inputs);
}

/* The kernel that a handle in the arguments of a call means at this moment, or NULL. */
static inline const struct kernel_name *walk_handle(const struct slice *s, uint64_t handle)
{
    return kernel_name_of(&s->walk->names[s->event.process->index].handles, handle);
}

#endif
