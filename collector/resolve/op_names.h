/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's own names of operators and labels mean, and which forward operator belongs to a
 * backward one. */
#ifndef GPUPROF_COLLECTOR_OP_NAMES_H
#define GPUPROF_COLLECTOR_OP_NAMES_H

#include "resolve/spans.h"

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
    uint32_t number; /* struct host_span; 0: free */
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
 * (0: not known). Stores it if it may be a forward operator and is the last with its number; then
 * returns it, a view until a later call. Otherwise NULL.
 */
const struct forward_op *op_pairs_keep(struct op_pairs *pairs, const struct host_span *op,
                                       uint64_t thread);

/* The forward operator of `op`; `name` is NULL if not known. A view until the next op_pairs_keep.
 * NULL: `op` is no backward operator, or its slot was reused. */
const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct host_span *op,
                                       const struct kernel_name *name);

#endif
