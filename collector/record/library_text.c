/* SPDX-License-Identifier: Apache-2.0 */
#include "record/library_text.h"

#include <stddef.h>

#define ENTRIES(table) (sizeof(table) / sizeof(table)[0])

/* By the numbers of library_types.h and cublas_api.h; a complex type has a "c" before its parts'.
 */
static const char *const cuda_types[] = {
    "f32", "f64",  "f16",  "i8",    "cf32", "cf64", "cf16",  "ci8",  "u8",   "cu8",  "i32", "ci32",
    "u32", "cu32", "bf16", "cbf16", "i4",   "ci4",  "u4",    "cu4",  "i16",  "ci16", "u16", "cu16",
    "i64", "ci64", "u64",  "cu64",  "e4m3", "e5m2", "ue8m0", "e2m3", "e3m2", "e2m1"};
static const char *const compute_types[] = {
    [64] = "f16",           [65] = "f16-pedantic",  [68] = "f32",
    [69] = "f32-pedantic",  [70] = "f64",           [71] = "f64-pedantic",
    [72] = "i32",           [73] = "i32-pedantic",  [74] = "f32-fast-f16",
    [75] = "f32-fast-bf16", [77] = "f32-fast-tf32", [78] = "f32-emulated-bf16x9"};
static const char *const operations[] = {"n", "t", "c", "conjugate"};

static const char *const nccl_types[] = {"i8",  "u8",  "i32", "u32",  "i64",  "u64",
                                         "f16", "f32", "f64", "bf16", "e4m3", "e5m2"};
static const char *const nccl_ops[] = {"sum", "prod", "max", "min", "avg"};

const char *nccl_type_text(uint64_t type)
{
    return type < ENTRIES(nccl_types) ? nccl_types[type] : NULL;
}

const char *nccl_op_text(uint64_t op)
{
    return op < ENTRIES(nccl_ops) ? nccl_ops[op] : NULL;
}

const char *cuda_type_text(uint64_t type)
{
    return type < ENTRIES(cuda_types) ? cuda_types[type] : NULL;
}

const char *compute_type_text(uint64_t compute)
{
    return compute < ENTRIES(compute_types) ? compute_types[compute] : NULL;
}

const char *transpose_text(uint64_t operation)
{
    return operation < ENTRIES(operations) ? operations[operation] : NULL;
}
