/* SPDX-License-Identifier: Apache-2.0 */
/* What PyTorch's own names of operators and labels say. */
#ifndef GPUPROF_COLLECTOR_OP_KIND_H
#define GPUPROF_COLLECTOR_OP_KIND_H

#include "model/op_stack.h"

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
