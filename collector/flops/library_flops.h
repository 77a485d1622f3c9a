/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the work of a library call from its arguments. Floating-point operations: a multiply-add
 * is two, or eight for complex numbers. Bytes: those of operands and result, once each, which must
 * be moved at least. The work is not known if an argument is not known, or a number does not fit.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_FLOPS_H
#define GPUPROF_COLLECTOR_LIBRARY_FLOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Sizes and types of a library call, from its arguments. */
#define LIBRARY_TYPE_NONE    255 /* cudaDataType: none, or not known */
#define LIBRARY_COMPUTE_TF32 77  /* cublasComputeType_t */

/* 0: not present in the call. No padding, since the bytes are compared. */
struct library_shape {
    uint64_t m, n, k;
    uint64_t batch;   /* number of products; 0: one */
    uint64_t mnk;     /* sum of m * n * k, if products differ in size */
    uint64_t count;   /* elements of a message, as in the call */
    uint64_t bytes;   /* bytes of the message */
    uint64_t plan;    /* number of a LIBRARY_PLAN record ... */
    uint32_t process; /* ... and index of its process + 1 */
    uint32_t ranks;   /* size of the communicator; 0: not known */
    uint16_t compute; /* cublasComputeType_t, or a cudaDataType; UINT16_MAX: none */
    uint8_t a_type, b_type, c_type, d_type; /* cudaDataType */
    uint8_t trans_a, trans_b;               /* cublasOperation_t; LIBRARY_TYPE_NONE: none */
    uint8_t side;                           /* side of a triangular matrix: 0 left, 1 right */
    uint8_t count_type;                     /* cudaDataType */
    bool has_m, has_n, has_k;               /* the size is recorded */
    uint8_t reserved[3];
};

/* Sets the size of a message; 0 bytes if not known, or too large. */
void library_shape_count(struct library_shape *shape, uint64_t count, uint8_t type);

/* Prints " 4096x4096x4096 batch 32 bf16 tn", or nothing. */
void library_shape_put(const struct library_shape *shape, FILE *out);

struct library_work {
    bool has_flops;
    bool has_bytes;
    uint8_t type; /* cudaDataType of both factors; LIBRARY_TYPE_NONE: different, or not known */
    uint64_t flops;
    uint64_t bytes;
};

/* The work of a call with that role (enum api_role). */
struct library_work library_work_of(unsigned does, const struct library_shape *shape);

/* The work described by the text of a LIBRARY_PLAN record. */
struct library_work library_plan_work(const char *text);

#endif
