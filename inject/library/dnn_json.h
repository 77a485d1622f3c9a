/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an execution plan of cuDNN says of itself: CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION,
 * the graph of its operations. (The operations of a graph cannot be asked for one by one.)
 */
#ifndef GPUPROF_INJECT_DNN_JSON_H
#define GPUPROF_INJECT_DNN_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "library/dnn_text.h"

#define DNN_TENSORS_MAX 1024 /* of a graph */

struct dnn_slice {
    const char *at;
    size_t bytes;
};

/* Where a tensor of the graph is described. */
struct dnn_tensor {
    struct dnn_slice name;
    struct dnn_slice description;
};

/* Appends the operations of the graph. False: it is none that is understood. `tensors`: room for
 * DNN_TENSORS_MAX. */
bool dnn_json_text(const char *json, size_t bytes, struct dnn_tensor *tensors, struct dnn_text *t);

#endif
