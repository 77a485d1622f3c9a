/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls of cuDNN work on, as the text of a LIBRARY_PLAN record (event-stream.md has its
 * grammar): operations one after another, each with its tensors and numbers.
 */
#ifndef GPUPROF_INJECT_DNN_TEXT_H
#define GPUPROF_INJECT_DNN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DNN_DIMS_MAX 8 /* CUDNN_DIM_MAX */

enum dnn_flag {
    DNN_VIRTUAL = 1,       /* between operations of one kernel: never in memory */
    DNN_CHANNELS_LAST = 2, /* the second dimension lies closest together */
};

/* A text under way, in the caller's buffer. */
struct dnn_text {
    char *text;
    uint32_t bytes_max;
    uint32_t bytes;
    uint32_t operation; /* where the one under way begins */
    bool is_cut;        /* one found no room: it and all after it are "..." */
};

/* `bytes_max`: at least that of the mark for what finds no room. */
#define DNN_TEXT_BYTES_MIN 8

void dnn_text_init(struct dnn_text *t, char *text, uint32_t bytes_max);

/* The next operation. `name` and all other words: upper case becomes lower. */
void dnn_text_operation(struct dnn_text *t, const char *name, size_t bytes);

/* What is said of it: key=value. */
void dnn_text_word(struct dnn_text *t, const char *key, const char *word);
void dnn_text_pair(struct dnn_text *t, const char *key, size_t key_bytes, const char *word,
                   size_t word_bytes);
void dnn_text_numbers(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *numbers,
                      unsigned count);
void dnn_text_tensor(struct dnn_text *t, const char *key, size_t key_bytes, const int64_t *dims,
                     unsigned count, const char *type, unsigned flags);

/* The enum dnn_flag that strides tell. */
unsigned dnn_layout(const int64_t *dims, const int64_t *strides, unsigned count);

/* Of a cudnnDataType_t, by its number or by its name without "CUDNN_DATA_"; "?": not known. */
const char *dnn_type(int type);
const char *dnn_type_named(const char *name, size_t bytes);

#endif
