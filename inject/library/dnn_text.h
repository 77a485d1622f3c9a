/* SPDX-License-Identifier: Apache-2.0 */
/* What cuDNN's calls compute, as the text of a LIBRARY_PLAN record (grammar in event-stream.md):
 * operations one after another, each with its tensors and numbers. */
#ifndef GPUPROF_INJECT_DNN_TEXT_H
#define GPUPROF_INJECT_DNN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNN_DIMS_MAX 8 /* CUDNN_DIM_MAX */

enum dnn_flag {
    DNN_VIRTUAL = 1,       /* between operations of one kernel, never in memory */
    DNN_CHANNELS_LAST = 2, /* the elements of the second dimension are adjacent */
};

/* A text being written to the caller's buffer. */
struct dnn_text {
    char *text;
    uint32_t bytes_max;
    uint32_t bytes;
    uint32_t operation; /* start of the operation being written */
    bool is_cut;        /* an operation did not fit: it and all later ones are "..." */
};

/* `bytes_max`: at least enough for the mark "...". */
#define DNN_TEXT_BYTES_MIN 8

void dnn_text_init(struct dnn_text *t, char *text, uint32_t bytes_max);

/* Begins the next operation. `name` and all other words are converted to lower case. */
void dnn_text_operation(struct dnn_text *t, const char *name, size_t bytes);

/* Appends key=value. */
void dnn_text_word(struct dnn_text *t, const char *key, const char *word);
void dnn_text_pair(struct dnn_text *t, const char *key, size_t key_bytes, const char *word,
                   size_t word_bytes);
void dnn_text_numbers(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *numbers,
                      unsigned count);
void dnn_text_tensor(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *dims,
                     unsigned count, const char *type, unsigned flags);

/* Returns the enum dnn_flag bits that follow from the strides. */
unsigned dnn_layout(const int64_t *dims, const int64_t *strides, unsigned count);

/* Returns the name of a cudnnDataType_t, from its number or its name without "CUDNN_DATA_"; "?":
 * not known. */
const char *dnn_type(int type);
const char *dnn_type_named(const char *name, size_t bytes);

#endif
