/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what an execution plan of cuDNN says about itself:
 * CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, the graph of its operations. (A graph's operations
 * cannot be queried one by one.)
 */
#ifndef GPUPROF_INJECT_DNN_JSON_H
#define GPUPROF_INJECT_DNN_JSON_H

#include <stdbool.h>
#include <stddef.h>

#include "library/dnn_text.h"

#define DNN_TENSORS_MAX 1024 /* per graph */

struct dnn_slice {
    const char *at;
    size_t bytes;
};

/* Where the JSON describes a tensor of the graph. */
struct dnn_tensor {
    struct dnn_slice name;
    struct dnn_slice description;
};

/* Appends the operations of the graph. Returns false if the JSON is not understood. `tensors`:
 * space for DNN_TENSORS_MAX. */
bool dnn_json_text(const char *json, size_t bytes, struct dnn_tensor *tensors, struct dnn_text *t);

#endif
