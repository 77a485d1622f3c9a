/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arguments of an operator as bytes (format in formats/event-stream.md), read from PyTorch's
 * memory. PyTorch's functions are not called: for tensor subclasses such as FakeTensor they may run
 * Python code. The offsets in tensors and lists are found by checking the first ones, with reads
 * through the kernel. Values whose offset is not found are not read.
 */
#ifndef GPUPROF_INJECT_OP_VALUES_H
#define GPUPROF_INJECT_OP_VALUES_H

#include <stdbool.h>
#include <stdint.h>

#include "torch/torch_abi.h"

#define OP_VALUES_BYTES_MAX 4096 /* further bytes are left out, and marked so */

/* The first byte of each value in the stream. */
enum op_value {
    OP_VALUE_NONE,
    /*
     * followed by its type (c10::ScalarType) and number of dimensions, a byte each, and the sizes
     */
    OP_VALUE_TENSOR,
    OP_VALUE_UNDEFINED, /* an undefined tensor */
    OP_VALUE_INT,       /* zigzag-encoded */
    OP_VALUE_DOUBLE,    /* 8 bytes */
    OP_VALUE_BOOL,      /* one byte */
    OP_VALUE_LIST,      /* followed by the number of its values, and these */
    OP_VALUE_OTHER,     /* strings, devices, generators ... */
    OP_VALUE_UNREAD,    /* a tensor that could not be read */
    OP_VALUE_SCALAR,    /* a number whose value is not kept */
    OP_VALUE_CUT,       /* the last value: the others are not kept */
};

/* Writes the arguments; returns the number of bytes. `has_numbers`: also the values of numbers.
 * *is_fake is set if one of the tensors has sizes but no data. Keeps errno. */
uint32_t op_values_write(uint8_t bytes[OP_VALUES_BYTES_MAX], const void *values, uint64_t count,
                         bool has_numbers, bool *is_fake);

/* Returns true if no known layout matches the tensors; their sizes are not read then. */
bool op_values_are_refused(void);

/* Call it in the child of a fork: no thread there is checking. */
void op_values_reset(void);

#endif
