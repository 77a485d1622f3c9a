/* SPDX-License-Identifier: Apache-2.0 */
/* Queries cuDNN with getters of the library that the call goes to. A failing getter leaves a
 * message for cudnnGetLastErrorString, which is removed again. */
#ifndef GPUPROF_INJECT_DNN_READ_H
#define GPUPROF_INJECT_DNN_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "library/dnn_text.h"

enum dnn_kind {
    DNN_IS_NONE,
    DNN_IS_TENSOR,
    DNN_IS_FILTER,
    DNN_IS_CONVOLUTION,
    DNN_IS_RNN,
    DNN_IS_SEQUENCES, /* input or output of a recurrent network */
};

#define DNN_ITEMS_MAX 5

struct dnn_item {
    uint8_t kind; /* enum dnn_kind */
    const char *key;
    const void *descriptor; /* NULL: the call has none */
};

struct dnn_getters;

/* Returns the getters of the library that contains `real`; NULL: none. */
const struct dnn_getters *dnn_getters_of(uintptr_t real);

/* An object was unloaded, which may have been one of them. */
void dnn_unloaded(void);

/* Reads a plan's complete JSON. `bytes` is the space, and then the JSON's size. `json` NULL: only
 * returns the size. */
bool dnn_ask_json(const struct dnn_getters *ask, const void *plan, int64_t *bytes, char *json);

/* The contents of a descriptor; the rest is 0. */
struct dnn_read {
    int type;
    int format; /* format of a filter, mode of a convolution, or cell type of a recurrent network */
    int groups; /* for a recurrent network: is it bidirectional? */
    int count;
    int dims[DNN_DIMS_MAX]; /* padding of a convolution, or sizes of a recurrent network */
    int strides[DNN_DIMS_MAX];
    int dilations[DNN_DIMS_MAX];
};

#define DNN_READ_TEXT_MAX 2048

bool dnn_read(const struct dnn_getters *ask, const struct dnn_item *items, struct dnn_read *read);
void dnn_read_text(const char *name, const struct dnn_item *items, const struct dnn_read *read,
                   struct dnn_text *text);

#endif
