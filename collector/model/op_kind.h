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

#endif
