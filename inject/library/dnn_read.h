/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a cuDNN: its getters, found in the library that the call goes to. One that fails has left a
 * message for cudnnGetLastErrorString, which is taken away again.
 */
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
    DNN_IS_SEQUENCES, /* what a recurrent network reads or writes */
};

#define DNN_ITEMS_MAX 5

struct dnn_item {
    uint8_t kind; /* enum dnn_kind */
    const char *key;
    const void *descriptor; /* NULL: the call has none */
};

struct dnn_getters;

/* Of the library that `real` is in; NULL: there are none. */
const struct dnn_getters *dnn_getters_of(uintptr_t real);

/* An object was unloaded: it may have been one of them. */
void dnn_unloaded(void);

/* The JSON of a plan, whole: `bytes` is what there is room for, and what it is. `json` NULL: tells
 * only that. */
bool dnn_ask_json(const struct dnn_getters *ask, const void *plan, int64_t *bytes, char *json);

/* What a descriptor says; the rest is 0. */
struct dnn_read {
    int type;
    int format; /* of a filter; of a convolution its mode, of a recurrent network its cells */
    int groups; /* of a recurrent network: is it of two directions? */
    int count;
    int dims[DNN_DIMS_MAX]; /* of a convolution its padding, of a recurrent network its sizes */
    int strides[DNN_DIMS_MAX];
    int dilations[DNN_DIMS_MAX];
};

#define DNN_READ_TEXT_MAX 2048

bool dnn_read(const struct dnn_getters *ask, const struct dnn_item *items, struct dnn_read *read);
void dnn_read_text(const char *name, const struct dnn_item *items, const struct dnn_read *read,
                   struct dnn_text *text);

#endif
