/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ranges that programs name (NVTX), followed event by event in the order of the timeline: which
 * are open on each thread, and what their texts are. Nested ranges (push, pop) and free ones
 * (start, end) of a thread stand in one stack; a free one is taken out wherever it is. At most
 * RANGES_DEPTH_MAX are followed on a thread; deeper ones are counted, so that their ends find them,
 * and, like ends without a beginning, noted in the process's losses. Operators of PyTorch's
 * emit_nvtx are ranges that say so (is_op); not where gpuprof recorded PyTorch's operators itself,
 * which then are the same ones twice.
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
    const struct kernel_name *text; /* NULL: none, or too many different ones */
    uint64_t begin_ns;
    uint64_t end_ns; /* of one that has ended */
    uint64_t domain;
    const struct kernel_name
        *domain_text; /* NULL: the default one, or, of an open one, not named yet */
    uint64_t category;
    uint64_t color;
    uint64_t payload_type;
    uint64_t payload;
    uint64_t schema;     /* of a payload of NVTX's extension; 0: there is none */
    uint64_t data_bytes; /* of that one, of which `data` has the first */
    uint64_t data[RANGE_DATA_WORDS];
    uint64_t number; /* of a free range */
    struct process *process;
    struct thread *thread; /* that opened it */
    uint32_t sequence;     /* in its process, from 1 on: the same in every pass */
    uint32_t node;         /* for its user: the survey's number of it */
    uint32_t row;          /* for its user */
    uint32_t mark;         /* for steps.h */
    bool nested;           /* push and pop */
    bool used;             /* for its user */
    /* An operator or label of PyTorch's emit_nvtx, and not shown as a range. Its text is the name
     * alone. */
    bool is_op;
    bool is_label;
    bool is_twin; /* of the call of a library that it was made in, which says the same by a range */
    uint64_t op_id;
    uint64_t op_sequence;             /* 1 more than it; 0: none */
    const struct kernel_name *inputs; /* bytes as of an OP_INPUTS record; NULL: none */
};

struct range_stack {
    struct range *open; /* owned */
    uint32_t count;
    uint32_t capacity;
    uint32_t beyond; /* pushes beyond RANGES_DEPTH_MAX, not yet popped */
};

struct ranges {
    struct recording *rec;
    struct kernel_names *texts; /* views, and so the losses, which are by process index */
    struct losses *losses;
    struct range_stack *stacks; /* owned; see ranges_stack */
    uint32_t first_thread;      /* index of the thread that has the first of them ... */
    uint32_t thread_count;      /* ... and how many have one */
    uint32_t *sequences;        /* owned, by process index from first_process on */
    uint32_t first_process;
    struct key_map labels;  /* (process and kind, domain, handle) -> struct kernel_name */
    struct key_map started; /* (process, number) -> thread index + 1 */
    struct range result;    /* what ranges_take hands out */
    uint32_t drained;       /* threads, from the first on, that have no range left */
    bool *has_ops;          /* owned, as sequences: gpuprof recorded PyTorch's operators itself */
};

static inline struct range_stack *ranges_stack(const struct ranges *r, uint32_t thread_index)
{
    return &r->stacks[thread_index - r->first_thread];
}

/* RANGE_LEFT, for users: it is still open behind the last event. */
enum range_change { RANGE_NONE, RANGE_OPENED, RANGE_CLOSED, RANGE_MARKED, RANGE_LEFT };

/* Of the events of one process `only`, or, if that is NULL, of all. All that is named must stay. 0
 * or GPUPROF_NO_MEMORY; ranges_release in both cases. */
int ranges_init(struct ranges *r, struct recording *rec, const struct process *only,
                struct kernel_names *texts, struct losses *losses);
void ranges_release(struct ranges *r);

/*
 * Takes any event. An enum range_change and the range in *range (of an open one the original, of
 * the others a copy that the next call overwrites), or GPUPROF_NO_MEMORY.
 */
int ranges_take(struct ranges *r, const struct event *event, struct range **range);

/* The innermost range that is open on the thread and no operator, or NULL; `nested`: of push and
 * pop only. */
struct range *ranges_innermost(struct ranges *r, const struct thread *thread, bool nested);

/* After the last event, whose times are by process index: takes out one range that is still open,
 * innermost first, which then ends; NULL when none is left. */
struct range *ranges_drain(struct ranges *r, const uint64_t *last_ns);

/* What a label record said; NULL: nothing. */
const struct kernel_name *ranges_label(const struct ranges *r, const struct process *p,
                                       uint64_t kind, uint64_t domain, uint64_t handle);

#endif
