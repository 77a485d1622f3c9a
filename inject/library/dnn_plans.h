/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuDNN's calls compute: the number of a LIBRARY_PLAN record. An execution plan is queried
 * once, and stays the same until it is destroyed. Descriptors passed to an older function are read
 * in each call. If cuDNN does not tell, the number is 0: not known.
 */
#ifndef GPUPROF_INJECT_DNN_PLANS_H
#define GPUPROF_INJECT_DNN_PLANS_H

#include <stdint.h>

#include "library/dnn_read.h"
#include "library/library_call.h"

struct dnn_call {
    struct library_plan plan;
    const void *execution_plan;
    const char *name; /* of the operation, if there is no execution plan */
    struct dnn_item items[DNN_ITEMS_MAX];
};

uint64_t dnn_plan_number(const struct library_plan *plan, struct thread *t);

/* Makes the first argument of a row of api_cudnn.def, in its wrapper. */
#define DNN_PLAN(descriptor)                                                                       \
    (&(struct dnn_call){.plan = {dnn_plan_number}, .execution_plan = (descriptor)})
#define DNN_OPERATION(its_name, ...)                                                               \
    (&(struct dnn_call){.plan = {dnn_plan_number}, .name = (its_name), .items = {__VA_ARGS__}})
#define DNN_TENSOR(its_key, its_descriptor)                                                        \
    {                                                                                              \
        DNN_IS_TENSOR, its_key, its_descriptor                                                     \
    }
#define DNN_FILTER(its_key, its_descriptor)                                                        \
    {                                                                                              \
        DNN_IS_FILTER, its_key, its_descriptor                                                     \
    }
#define DNN_CONVOLUTION(its_descriptor)                                                            \
    {                                                                                              \
        DNN_IS_CONVOLUTION, "", its_descriptor                                                     \
    }

#define DNN_RNN(its_descriptor)                                                                    \
    {                                                                                              \
        DNN_IS_RNN, "", its_descriptor                                                             \
    }
#define DNN_SEQUENCES(its_key, its_descriptor)                                                     \
    {                                                                                              \
        DNN_IS_SEQUENCES, its_key, its_descriptor                                                  \
    }

/* Call it in the child of a fork: its file has no plans yet. */
void dnn_reset(void);

#endif
