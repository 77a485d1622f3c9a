/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows PyTorch's operators and labels event by event, in the order of the timeline: which are
 * open on each thread, what their numbers mean, and how much of their time is their own. A begin is
 * matched to the next end with the same object, on any thread. They usually nest but may cross: an
 * operator is removed wherever it is in its thread's stack, and what ends lies inside those still
 * open. At most OPS_DEPTH_MAX are followed on a thread, and in all as many as the size of the files
 * allows (some 300 bytes each). Further ones are counted in the process's losses, like ends without
 * a begin, and begins that another one with the same object follows. Operators of emit_nvtx, which
 * are ranges (range_stack.h), use the same stacks.
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
#define OPS_CHAIN_MAX  (4 * OPS_DEPTH_MAX) /* around a call, including those that have ended */
#define OPS_OPEN_FREE  (1u << 15)          /* open operators in all threads together; */
#define OPS_OPEN_BYTES 32 /* one more for each so many bytes of files, KEY_MAP_MAX at most */

struct op {
    const struct kernel_name *text; /* its name; NULL: not known */
    uint64_t name;   /* number of an OP_NAME record; 0: the event has the name itself */
    uint64_t inputs; /* number of an OP_INPUTS record; 0: none */
    uint64_t object;
    uint64_t sequence; /* autograd sequence number + 1; 0: none */
    uint64_t forward_thread;
    uint64_t begin_ns;
    uint64_t end_ns;   /* of an operator that has ended */
    uint64_t inner_ns; /* time covered by ended operators directly inside it */
    uint64_t inner_end_ns;
    struct process *process;
    struct thread *thread; /* on which it began */
    uint32_t number;       /* in its process, shared with ranges: the same in every pass */
    uint32_t node;         /* number in the survey; 0: no call was made in it */
    uint32_t stack;        /* number of a STACK record; 0: none, as it is not outermost */
    uint32_t row;          /* for its user, like the next two */
    uint32_t inside;       /* number of operators that began directly in it */
    uint32_t duplicate;    /* the last of them with the same name as this */
    uint32_t mark;         /* for steps.h */
    uint16_t scope;        /* enum op_scope */
    uint8_t region;        /* for op_phases.h */
    bool is_traced;        /* traced by torch.compile: it does no work */
    bool is_moved;         /* ended on another thread */
    bool is_nvtx; /* from emit_nvtx: no inputs, no forward thread; `object` is its number there */
    bool is_captured; /* for its user */
};

struct op_stack {
    struct op *open; /* owned */
    uint32_t count;
    uint32_t capacity;
};

/* Meaning of the numbers in a process. */
struct op_numbers {
    struct kernel_handles names;
    struct kernel_handles inputs; /* bytes of OP_INPUTS records */
};

struct ops {
    struct recording *rec;
    struct kernel_names *texts; /* a view, like the losses, which are by process index */
    struct losses *losses;
    struct op_stack *stacks; /* owned; see ops_stack */
    uint32_t first_thread;   /* as struct ranges */
    uint32_t thread_count;
    struct key_map begun; /* (process, object) -> thread index + 1 */
    struct op result;     /* the copy that ops_take returns */
    bool is_replaced;     /* the last event replaced an open operator, now in `result` */
};

static inline struct op_stack *ops_stack(const struct ops *o, uint32_t thread_index)
{
    return &o->stacks[thread_index - o->first_thread];
}

/* OP_LEFT, for users: still open after the last event. */
enum op_change { OP_SAME, OP_OPENED, OP_CLOSED, OP_LEFT };

static inline bool op_is_label(const struct op *op)
{
    return op->scope == OP_SCOPE_LABEL;
}

static inline bool op_is_module(const struct op *op)
{
    return op->scope == OP_SCOPE_MODULE;
}

/* An operator that does work: not a label or module, and not traced by torch.compile. */
static inline bool op_works(const struct op *op)
{
    return op_scope_works(op->scope) && !op->is_traced;
}

/* Follows the events of process `only`, or, if that is NULL, of all. All arguments must stay.
 * Returns 0 or GPUPROF_NO_MEMORY; ops_release in both cases. */
int ops_init(struct ops *o, struct recording *rec, const struct process *only,
             struct kernel_names *texts, struct losses *losses);
void ops_release(struct ops *o);

/*
 * Takes an OP_BEGIN or OP_END. An operator that opens gets the next number of *sequence, and its
 * name from `numbers`. Returns an enum op_change and the operator in *op (the original if it is
 * open, else a copy that the next call overwrites), or GPUPROF_NO_MEMORY.
 */
int ops_take(struct ops *o, const struct event *event, const struct op_numbers *numbers,
             uint32_t *sequence, struct op **op);

/* The same for a range that is an operator, as it opens and closes; it has the range's number. */
int ops_open_range(struct ops *o, const struct range *range, struct op **op);
int ops_close_range(struct ops *o, const struct range *range, struct op **op);

/* The innermost open operator on the thread that works (op_works), or NULL. */
const struct op *ops_innermost(const struct ops *o, const struct thread *thread);

/* The outermost open operator on the thread with a stack, or NULL. That is the stack of each call
 * in it, without PyTorch's own frames. */
const struct op *ops_with_stack(const struct ops *o, const struct thread *thread);

/* The number of that stack; 0: there is none. */
static inline uint32_t ops_stack_around(const struct ops *o, const struct thread *thread)
{
    const struct op *op = ops_with_stack(o, thread);
    return op ? op->stack : 0;
}

/* The innermost module around `op`, which may have ended; NULL: none. */
const struct op *ops_module(const struct ops *o, const struct op *op);

/* After the last event: removes an operator still open on the thread, innermost first. It ends at
 * its process's time in last_ns. NULL: none is left. */
struct op *ops_drain(struct ops *o, uint32_t thread_index, const uint64_t *last_ns);

/* What PyTorch's own names of operators and labels mean. */

enum op_kind {
    OP_KIND_PLAIN,
    OP_KIND_BACKWARD,  /* work of autograd */
    OP_KIND_OPTIMIZER, /* labels such as "Optimizer.step#SGD.step", */
    OP_KIND_ZERO_GRAD, /* "Optimizer.zero_grad#SGD.zero_grad", */
    OP_KIND_LOADER,    /* "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__" */
    OP_KIND_PROFILER,  /* and "ProfilerStep#17" */
};

#define OP_OPTIMIZER_PREFIX "Optimizer.step#"
#define OP_PROFILER_PREFIX  "ProfilerStep#"
#define OP_HOOK_PREFIX      "[pl][profile]"

/* `text` is its name, or NULL. */
enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text);

/* Python code implements the operator around this one, by its name. */
enum op_python { OP_PYTHON_NONE, OP_PYTHON_MODE, OP_PYTHON_SUBCLASS };
enum op_python op_python_of(const struct kernel_name *text);

/* The hook that a label of Lightning's profilers names, or NULL for other labels. */
const char *op_hook_name(const struct kernel_name *text);

/*
 * Finds the forward operator of a backward one, as PyTorch's own traces do: the last to begin among
 * those with its sequence number on its forward thread. Sequence numbers of a thread grow, so the
 * last OP_PAIRS_MAX of all threads are stored, in 3 MiB, allocated with the first.
 */
#define OP_PAIRS_MAX (1u << 16)

struct forward_op {
    uint32_t process;
    uint32_t number; /* struct op; 0: free */
    uint64_t thread; /* PyTorch's thread number */
    uint64_t sequence;
    uint64_t begin_ns;
    uint32_t row; /* for its user */
};

struct op_pairs {
    struct forward_op *slots; /* owned, OP_PAIRS_MAX; NULL: none so far */
};

void op_pairs_release(struct op_pairs *pairs);

/*
 * Takes an operator that has ended; `thread` is PyTorch's number of the thread on which it began
 * (0: not known). Stores it if it may be a forward operator and is the last with its number.
 * Returns 1 and its slot in *slot, which a later call may reuse; 0 if it is not stored; or
 * GPUPROF_NO_MEMORY.
 */
int op_pairs_keep(struct op_pairs *pairs, const struct op *op, uint64_t thread, uint32_t *slot);

/* The forward operator of `op`; `name` is NULL if not known. A view until the next op_pairs_keep.
 * NULL: `op` is no backward operator, or its slot was reused. */
const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct op *op,
                                       const struct kernel_name *name);

#endif
