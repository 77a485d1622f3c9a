/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call of a library computes and what it must move at least, from its arguments: floating
 * point operations (a multiplication and an addition are two; of complex numbers four times as
 * many), and the bytes of its operands and its result, each counted once. Where an argument is not
 * known, or the number does not fit, the answer is that it is not known.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_FLOPS_H
#define GPUPROF_COLLECTOR_LIBRARY_FLOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How much there is to do for a call of a library: sizes and types, from its arguments. */
#define LIBRARY_TYPE_NONE    255 /* of a cudaDataType: there is none, or it is not known */
#define LIBRARY_COMPUTE_TF32 77  /* cublasComputeType_t */

/* 0 where a call has none. Without padding: its bytes are compared. */
struct library_shape {
    uint64_t m, n, k;
    uint64_t batch;   /* products in all; 0: one */
    uint64_t mnk;     /* of products of several sizes the sum of m * n * k */
    uint64_t count;   /* of a message, as the call has it */
    uint64_t bytes;   /* that these are */
    uint64_t plan;    /* number of a LIBRARY_PLAN record ... */
    uint32_t process; /* ... and 1 more than the index of the process that has it */
    uint32_t ranks;   /* of the communicator; 0: not known */
    uint16_t compute; /* cublasComputeType_t, or a cudaDataType; UINT16_MAX: none */
    uint8_t a_type, b_type, c_type, d_type; /* cudaDataType */
    uint8_t trans_a, trans_b;               /* cublasOperation_t; LIBRARY_TYPE_NONE: none */
    uint8_t side;                           /* of a triangular matrix: 0 left, 1 right */
    uint8_t count_type;                     /* cudaDataType */
    bool has_m, has_n, has_k;               /* they are recorded */
    uint8_t reserved[3];
};

/* A message of so many: what is not known, or does not fit, has no bytes. */
void library_shape_count(struct library_shape *shape, uint64_t count, uint8_t type);

/* " 4096x4096x4096 batch 32 bf16 tn", or nothing. */
void library_shape_put(const struct library_shape *shape, FILE *out);

struct library_work {
    bool has_flops;
    bool has_bytes;
    uint8_t type; /* cudaDataType of both factors; LIBRARY_TYPE_NONE: they differ, or not known */
    uint64_t flops;
    uint64_t bytes;
};

/* Of a call of a function that does that (enum api_role). */
struct library_work library_work_of(unsigned does, const struct library_shape *shape);

/* The same of what the text of a LIBRARY_PLAN record says. */
struct library_work library_plan_work(const char *text, size_t bytes);

#endif
