/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators and labels, followed event by event in the order of the timeline: which are
 * open on each thread, what belongs to their numbers, and how much of their time is their own. A
 * begin is tied to the next end with the same object, on any thread. They nest as a rule, but may
 * cross: one is taken out wherever it is in its thread's stack, and what ends is inside of those
 * that are still open. At most OPS_DEPTH_MAX are followed on a thread, and in all as many as the
 * files bear out (some 300 bytes each); further ones are counted, and, like ends without a begin
 * and begins that another one with the same object follows, noted in the process's losses. Those of
 * emit_nvtx, which are ranges (range_stack.h), are followed in the same stacks.
 */
#ifndef GPUPROF_COLLECTOR_OP_STACK_H
#define GPUPROF_COLLECTOR_OP_STACK_H

#include "base/key_map.h"
#include "read/recording.h"
#include "record/op_record.h"
#include "resolve/range_stack.h"
#include "resolve/timeline.h"
#include "symbol/kernel_names.h"

#define OPS_DEPTH_MAX  512
#define OPS_CHAIN_MAX  (4 * OPS_DEPTH_MAX) /* around a call, with those that have ended */
#define OPS_OPEN_FREE  (1u << 15) /* operators that are open at a time, in all threads together; */
#define OPS_OPEN_BYTES 32         /* and one more for so many of the files, KEY_MAP_MAX at most */

struct op {
    const struct kernel_name *text; /* its name; NULL: not known */
    uint64_t name;                  /* number of an OP_NAME record; 0: the name is its own */
    uint64_t inputs;                /* number of an OP_INPUTS record; 0: none */
    uint64_t object;
    uint64_t sequence; /* 1 more than it; 0: none */
    uint64_t forward_thread;
    uint64_t begin_ns;
    uint64_t end_ns;   /* of one that has ended */
    uint64_t inner_ns; /* that those directly inside of it cover which have ended */
    uint64_t inner_end_ns;
    struct process *process;
    struct thread *thread; /* that it began on */
    uint32_t number;       /* in its process, shared with ranges: the same in every pass */
    uint32_t node;         /* the survey's number of it, 0: no call was made in it */
    uint32_t stack;        /* number of a STACK record; 0: none: it is not its thread's outermost */
    uint32_t row;          /* for its user, and so the next two */
    uint32_t inside;       /* how many began directly in it */
    uint32_t twin;         /* the last of them with its own name */
    uint32_t mark;         /* for steps.h */
    uint16_t scope;        /* enum op_scope */
    uint8_t region;        /* for op_phases.h */
    bool is_traced;        /* torch.compile looks at it: it does no work */
    bool is_moved;         /* it ended on another thread */
    bool is_nvtx;     /* of emit_nvtx: no types, no forward thread; `object` is its number there */
    bool is_captured; /* for its user */
};

struct op_stack {
    struct op *open; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* What the numbers of a process mean. */
struct op_numbers {
    struct kernel_handles names;
    struct kernel_handles inputs; /* bytes of OP_INPUTS records */
};

struct ops {
    struct recording *rec;
    struct kernel_names *texts; /* views, and so the losses, which are by process index */
    struct losses *losses;
    struct op_stack *stacks; /* owned; see ops_stack */
    uint32_t first_thread;   /* as struct ranges */
    uint32_t thread_count;
    struct key_map begun; /* (process, object) -> thread index + 1 */
    struct op result;     /* what ops_take hands out */
    bool is_replaced;     /* what was taken last replaced an open one, which is in `result` */
    uint32_t drained;     /* threads, from the first on, that have no operator left */
};

static inline struct op_stack *ops_stack(const struct ops *o, uint32_t thread_index)
{
    return &o->stacks[thread_index - o->first_thread];
}

/* OP_LEFT, for users: it is still open behind the last event. */
enum op_change { OP_SAME, OP_OPENED, OP_CLOSED, OP_LEFT };

static inline bool op_is_label(const struct op *op)
{
    return op->scope == OP_SCOPE_LABEL;
}

static inline bool op_is_module(const struct op *op)
{
    return op->scope == OP_SCOPE_MODULE;
}

/* An operator that does something: neither label nor module, nor what torch.compile looks at. */
static inline bool op_works(const struct op *op)
{
    return op_scope_works(op->scope) && !op->is_traced;
}

/* Of the events of one process `only`, or, if that is NULL, of all. All that is named must stay. 0
 * or GPUPROF_NO_MEMORY; ops_release in both cases. */
int ops_init(struct ops *o, struct recording *rec, const struct process *only,
             struct kernel_names *texts, struct losses *losses);
void ops_release(struct ops *o);

/*
 * Takes an OP_BEGIN or OP_END; one that opens gets the next number of *sequence, and its name of
 * `numbers`. An enum op_change and the operator in *op (of an open one the original, of others a
 * copy that the next call overwrites), or GPUPROF_NO_MEMORY.
 */
int ops_take(struct ops *o, const struct event *event, const struct op_numbers *numbers,
             uint32_t *sequence, struct op **op);

/* Likewise of a range that is an operator, as it opens and closes; it has the range's number. Its
 * inputs are given that of their text, of which `numbers` learns. */
int ops_open_range(struct ops *o, const struct range *range, struct op_numbers *numbers,
                   struct op **op);
int ops_close_range(struct ops *o, const struct range *range, struct op **op);

/* The innermost operator that works (op_works) and is open on the thread, or NULL. */
const struct op *ops_innermost(const struct ops *o, const struct thread *thread);

/* The outermost operator that is open on the thread and has the stack from which it was called,
 * which is that of each call in it but for what PyTorch does there; NULL: there is none. */
const struct op *ops_with_stack(const struct ops *o, const struct thread *thread);

/* That stack; 0: there is none. */
static inline uint32_t ops_stack_around(const struct ops *o, const struct thread *thread)
{
    const struct op *op = ops_with_stack(o, thread);
    return op ? op->stack : 0;
}

/* The innermost module around `op`, which may have ended; NULL: it is in none. */
const struct op *ops_module(const struct ops *o, const struct op *op);

/* Is `op`, which has ended, in its thread's row behind all that is open there? */
bool ops_was_innermost(const struct ops *o, const struct thread *thread, uint32_t number);

/* After the last event, whose times are by process index: takes out one that is still open,
 * innermost first; NULL when none is left. */
struct op *ops_drain(struct ops *o, const uint64_t *last_ns);

/* What PyTorch's own names of operators and labels say. */

enum op_kind {
    OP_KIND_PLAIN,
    OP_KIND_BACKWARD,  /* autograd works */
    OP_KIND_OPTIMIZER, /* the labels "Optimizer.step#SGD.step", */
    OP_KIND_ZERO_GRAD, /* "Optimizer.zero_grad#SGD.zero_grad", */
    OP_KIND_LOADER,    /* "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" */
    OP_KIND_PROFILER,  /* and "ProfilerStep#17" */
};

#define OP_OPTIMIZER_PREFIX "Optimizer.step#"
#define OP_PROFILER_PREFIX  "ProfilerStep#"
#define OP_HOOK_PREFIX      "[pl][profile]"

/* `text`: its name, which may be NULL. */
enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text);

/* Python does what the operator around it was called for. */
enum op_python { OP_PYTHON_NONE, OP_PYTHON_MODE, OP_PYTHON_SUBCLASS };
enum op_python op_python_of(const struct kernel_name *text);

/* What Lightning's profilers call the hook, or NULL: the label is of none. */
const char *op_hook_name(const struct kernel_name *text);

/*
 * Which forward operator a backward one belongs to, as PyTorch's own traces have it: of those that
 * share its sequence number on its forward thread, the last to begin. Sequence numbers of a thread
 * go up, so the last OP_PAIRS_MAX of all threads are known, in 3 MiB from the first one on.
 */
#define OP_PAIRS_MAX (1u << 16)

struct forward_op {
    uint32_t process;
    uint32_t number; /* struct op; 0: free */
    uint64_t thread; /* PyTorch's number of it */
    uint64_t sequence;
    uint64_t begin_ns;
    uint32_t row; /* for its user */
};

struct op_pairs {
    struct forward_op *slots; /* owned, OP_PAIRS_MAX; NULL: there was none yet */
};

void op_pairs_release(struct op_pairs *pairs);

/*
 * An operator has ended that began on PyTorch's thread of that number (0: not known). If it may be
 * a forward one, and is the last of its number, it is kept: 1 and its slot in *slot, which is
 * another's from the next call on perhaps. 0: it is not; or GPUPROF_NO_MEMORY.
 */
int op_pairs_keep(struct op_pairs *pairs, const struct op *op, uint64_t thread, uint32_t *slot);

/* The forward operator of `op`, whose name is NULL if it is not known: a view until the next call
 * of op_pairs_keep. NULL: it is no backward operator, or too much came between. */
const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct op *op,
                                       const struct kernel_name *name);

#endif
