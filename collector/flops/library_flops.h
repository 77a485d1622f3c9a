/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Computes the work of a library call from its arguments. Floating-point operations: a multiply-add
 * is two, or eight for complex numbers. Bytes: those of operands and result, once each, which must
 * be moved at least. The work is not known if an argument is not known, or a number does not fit.
 */
#ifndef GPUPROF_COLLECTOR_LIBRARY_FLOPS_H
#define GPUPROF_COLLECTOR_LIBRARY_FLOPS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define LIBRARY_TYPE_NONE    255u /* cudaDataType: none, or not known */
#define LIBRARY_COMPUTE_TF32 77   /* cublasComputeType_t */

/* A shape is an array of these numbers. 0: not present in the call; types and operations have
 * LIBRARY_TYPE_NONE. */
enum shape_number {
    SHAPE_M,
    SHAPE_N,
    SHAPE_K,
    SHAPE_BATCH,   /* number of products; 0: one */
    SHAPE_MNK,     /* sum of m * n * k, if products differ in size */
    SHAPE_PLAN,    /* number of a LIBRARY_PLAN record ... */
    SHAPE_PROCESS, /* ... and index of its process + 1 */
    SHAPE_COUNT,   /* elements of a message, as in the call */
    SHAPE_BYTES,   /* bytes of the message */
    SHAPE_RANKS,   /* size of the communicator; 0: not known */
    SHAPE_COMPUTE, /* cublasComputeType_t, or a cudaDataType; UINT16_MAX: none */
    SHAPE_A_TYPE,  /* cudaDataType, and so are the next three */
    SHAPE_B_TYPE,
    SHAPE_C_TYPE,
    SHAPE_D_TYPE,
    SHAPE_TRANS_A, /* cublasOperation_t */
    SHAPE_TRANS_B,
    SHAPE_SIDE, /* side of a triangular matrix: 0 left, 1 right */
    SHAPE_TYPE, /* cudaDataType of the message */
    SHAPE_HAS,  /* bits of the recorded numbers */
    SHAPE_NUMBERS
};

static inline bool shape_has(const uint64_t *shape, unsigned number)
{
    return shape[SHAPE_HAS] >> number & 1;
}

/* Sets the size of a message; 0 bytes if not known, or too large. */
void library_shape_count(uint64_t *shape, uint64_t count, uint8_t type);

/* Prints " 4096x4096x4096 batch 32 bf16 tn", or nothing. */
void library_shape_put(const uint64_t *shape, FILE *out);

struct library_work {
    bool has_flops;
    bool has_bytes;
    uint8_t type; /* cudaDataType of both factors; LIBRARY_TYPE_NONE: different, or not known */
    uint64_t flops;
    uint64_t bytes;
};

/* The work of a call with that role (enum api_role). */
struct library_work library_work_of(unsigned does, const uint64_t *shape);

/* The work described by the text of a LIBRARY_PLAN record. */
struct library_work library_plan_work(const char *text);

#endif
