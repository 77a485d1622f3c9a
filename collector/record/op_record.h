/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scopes of PyTorch's operators, and a reader for the values of an OP_INPUTS record
 * (formats/event-stream.md).
 */
#ifndef GPUPROF_COLLECTOR_OP_RECORD_H
#define GPUPROF_COLLECTOR_OP_RECORD_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "bytes.h"
#include "record.h"

enum op_scope {
    OP_SCOPE_OPERATOR = 0,
    OP_SCOPE_BACKWARD = 1,
    OP_SCOPE_LABEL = 7,
    OP_SCOPE_MODULE = 254, /* not from PyTorch: the forward of a module */
};

/* Whether it does work itself: neither a label nor a module. */
static inline bool op_scope_works(unsigned scope)
{
    return scope != OP_SCOPE_LABEL && scope != OP_SCOPE_MODULE;
}

enum op_value_kind {
    OP_NONE,
    OP_TENSOR,
    OP_UNDEFINED,
    OP_INT,
    OP_DOUBLE,
    OP_BOOL,
    OP_LIST, /* contains the next `count` values; none of them is a list */
    OP_OTHER,
    OP_UNREAD,
    OP_SCALAR,
    OP_CUT,
};

#define OP_DIMENSIONS_MAX 64

struct op_value {
    enum op_value_kind kind;
    uint8_t type;    /* c10::ScalarType of a tensor */
    uint32_t count;  /* number of dimensions, or of the values of a list */
    int64_t number;  /* OP_INT, OP_BOOL */
    double fraction; /* OP_DOUBLE */
    uint64_t sizes[OP_DIMENSIONS_MAX];
};

/* Views of the record's bytes. */
struct op_values {
    struct byte_reader bytes;
    uint32_t list_left; /* remaining values of the current list */
};

/* Returns 1 and the next value, 0 at the end, or GPUPROF_DAMAGED. */
int op_values_next(struct op_values *v, struct op_value *out);

/* Writes the size, type or number of an input, and may skip the values of a list. Only tensors have
 * sizes; anything but a stored number is "". */
typedef char *op_put_fn(char *out, struct op_values *v, const struct op_value *value);
op_put_fn op_put_dims, op_put_type, op_put_numbers;

/* Writes these of all inputs in an OP_INPUTS record as a JSON list, like PyTorch's own traces: at
 * most OP_TEXT_BYTES(byte_count). Returns the end. */
#define OP_TEXT_BYTES(byte_count) (12ull * (byte_count) + 64)
char *op_put(char *out, const char *bytes, uint32_t byte_count, op_put_fn *put);

/* Prints the values for people: "float[4,16], 5, (1, 1), none". */
void op_values_print(const struct record *r, FILE *out);

#endif
