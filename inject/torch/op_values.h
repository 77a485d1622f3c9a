/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an operator was called with, as bytes (formats/event-stream.md has their form), read from
 * PyTorch's own memory: no call of its functions, which may be Python's for a tensor that is none
 * (FakeTensor). Where tensors and lists have what is read is found by a look at the first ones,
 * through the kernel; what cannot be found is not read.
 */
#ifndef GPUPROF_INJECT_OP_VALUES_H
#define GPUPROF_INJECT_OP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "torch/torch_abi.h"

#define OP_VALUES_BYTES_MAX 4096 /* the rest is left out, and marked so */

/* The first byte of each value; in the stream. */
enum op_value {
    OP_VALUE_NONE,
    OP_VALUE_TENSOR, /* its type (c10::ScalarType) and number of dimensions, a byte each; sizes */
    OP_VALUE_UNDEFINED, /* a tensor that is none */
    OP_VALUE_INT,       /* zigzag */
    OP_VALUE_DOUBLE,    /* 8 bytes */
    OP_VALUE_BOOL,      /* a byte */
    OP_VALUE_LIST,      /* how many values follow */
    OP_VALUE_OTHER,     /* texts, devices, generators ... */
    OP_VALUE_UNREAD,    /* a tensor */
    OP_VALUE_SCALAR,    /* a number that is not kept */
    OP_VALUE_CUT,       /* the last: there are more, which are not kept */
};

/* Bytes written. `has_numbers`: the numbers among them, too. *is_fake: a tensor among them has no
 * data, only sizes. errno is kept. */
uint32_t op_values_write(uint8_t bytes[OP_VALUES_BYTES_MAX], const void *values, uint64_t count,
                         bool has_numbers, bool *is_fake);

/* True: tensors are not laid out as any that we know; their sizes are not read. */
bool op_values_are_refused(void);

/* In the child of a fork: no thread of it is looking. */
void op_values_reset(void);

#endif
