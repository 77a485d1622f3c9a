/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows NVTX ranges event by event, in the order of the timeline: which are open on each thread,
 * and their texts. Nested ranges (push, pop) and free ones (start, end) of a thread share one
 * stack; a free one is removed from any place in it. At most RANGES_DEPTH_MAX are followed on a
 * thread. Deeper ones are counted, so that ends match, and noted in the process's losses, like ends
 * without a begin. Operators of PyTorch's emit_nvtx are ranges with is_op set, unless gpuprof
 * recorded PyTorch's operators itself: they would be duplicates.
 */
#ifndef GPUPROF_COLLECTOR_RANGE_STACK_H
#define GPUPROF_COLLECTOR_RANGE_STACK_H

#include "base/key_map.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

#define RANGES_DEPTH_MAX 512
#define RANGE_DATA_WORDS 4

struct range {
    const struct kernel_name *text; /* NULL: none, or too many different texts */
    uint64_t begin_ns;
    uint64_t end_ns; /* of an ended range */
    uint64_t domain;
    const struct kernel_name *domain_text; /* NULL: the default domain */
    uint64_t category;
    uint64_t color;
    uint64_t payload_type;
    uint64_t payload;
    uint64_t schema;     /* schema of a payload of NVTX's extension; 0: none */
    uint64_t data_bytes; /* bytes of that payload; `data` has the first */
    uint64_t data[RANGE_DATA_WORDS];
    uint64_t number; /* number of a free range */
    struct process *process;
    struct thread *thread; /* the thread that opened it */
    uint32_t sequence;     /* in its process, from 1 on: the same in every pass */
    uint32_t node;         /* number in the survey */
    uint32_t row;          /* for its user */
    uint32_t mark;         /* for steps.h */
    bool nested;           /* push and pop */
    bool used;             /* for its user */
    /* An operator or label of emit_nvtx, not shown as a range. Its text is the name alone. */
    bool is_op;
    bool is_label;
    bool is_duplicate; /* duplicates the library call around it */
    uint64_t op_id;
    uint64_t op_sequence; /* autograd sequence number + 1; 0: none */
};

struct range_stack {
    struct range *open; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t beyond; /* pushes beyond RANGES_DEPTH_MAX, not yet popped */
};

struct ranges {
    struct recording *rec;
    struct kernel_names *texts; /* a view, like the losses, which are by process index */
    struct losses *losses;
    struct range_stack *stacks; /* owned; see ranges_stack */
    uint32_t first_thread;      /* index of the thread with the first stack ... */
    uint32_t thread_count;      /* ... and number of stacks */
    uint32_t *sequences;        /* owned, by process index */
    struct key_map labels;      /* (process and kind, domain, handle) -> struct kernel_name */
    struct key_map started;     /* (process, number) -> thread index + 1 */
    struct range result;        /* the copy that ranges_take returns */
};

static inline struct range_stack *ranges_stack(const struct ranges *r, uint32_t thread_index)
{
    return &r->stacks[thread_index - r->first_thread];
}

/* RANGE_LEFT, for users: still open after the last event. */
enum range_change { RANGE_NONE, RANGE_OPENED, RANGE_CLOSED, RANGE_MARKED, RANGE_LEFT };

/* Follows the events of process `only`, or, if that is NULL, of all. All arguments must stay.
 * Returns 0 or GPUPROF_NO_MEMORY; ranges_release in both cases. */
int ranges_init(struct ranges *r, struct recording *rec, const struct process *only,
                struct kernel_names *texts, struct losses *losses);
void ranges_release(struct ranges *r);

/*
 * Takes any event. Returns an enum range_change and the range in *range (the original if it is
 * open, else a copy that the next call overwrites), or GPUPROF_NO_MEMORY.
 */
int ranges_take(struct ranges *r, const struct event *event, struct range **range);

/* The innermost open range on the thread, no operator; `nested`: push and pop only. Or NULL. */
struct range *ranges_innermost(struct ranges *r, const struct thread *thread, bool nested);

/* After the last event: removes a range still open on the thread, innermost first. It ends at its
 * process's time in last_ns. NULL: none is left. */
struct range *ranges_drain(struct ranges *r, uint32_t thread_index, const uint64_t *last_ns);

/* The text of a label record; NULL: none. */
const struct kernel_name *ranges_label(const struct ranges *r, const struct process *p,
                                       uint64_t kind, uint64_t domain, uint64_t handle);

#endif
