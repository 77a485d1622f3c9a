/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scopes of PyTorch's operators, and the values of an OP_INPUTS record
 * (formats/event-stream.md), one after another.
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
    OP_SCOPE_MODULE = 254, /* none of PyTorch's: the forward of a module */
};

/* What does something itself: neither a label nor a module. */
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
    OP_LIST, /* the next `count` values are its own; none of these is a list */
    OP_OTHER,
    OP_UNREAD,
    OP_SCALAR,
    OP_CUT,
};

#define OP_DIMENSIONS_MAX 64

struct op_value {
    enum op_value_kind kind;
    uint8_t type;    /* of a tensor: c10::ScalarType */
    uint32_t count;  /* of its dimensions; of a list's values */
    int64_t number;  /* OP_INT, OP_BOOL */
    double fraction; /* OP_DOUBLE */
    uint64_t sizes[OP_DIMENSIONS_MAX];
};

/* Views of the record's bytes. */
struct op_values {
    struct byte_reader bytes;
    uint32_t list_left; /* values of the list that it is in */
};

/* 1: one more, 0: that was all, or GPUPROF_DAMAGED. */
int op_values_next(struct op_values *v, struct op_value *out);

/*
 * The sizes, the types or the numbers of the inputs in the bytes of an OP_INPUTS record as a JSON
 * list, as PyTorch's own traces have them: what is no tensor has no sizes, what is no number, or
 * not kept, is "". At most OP_TEXT_BYTES(count); the end.
 */
#define OP_TEXT_BYTES(byte_count) (12ull * (byte_count) + 64)
char *op_put_dims(char *out, const char *bytes, uint32_t byte_count);
char *op_put_types(char *out, const char *bytes, uint32_t byte_count);
char *op_put_numbers(char *out, const char *bytes, uint32_t byte_count);

/* Prints the values for people: "float[4,16], 5, (1, 1), none". */
void op_values_print(const struct record *r, FILE *out);

#endif
