/* SPDX-License-Identifier: Apache-2.0 */
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "kernels.h"
#include "standin.h"

/*
 * What stands for cuBLAS: its own static runtime launches its kernels, as in the real one, so that
 * no hook of the runtime's names sees them. A kernel takes time and computes nothing.
 */

#define KERNELS(X)                                                                                 \
    X(gemm_nn, STANDIN_CUBLAS_PREFIX "gemm_128x128_nn")                                            \
    X(gemm_nt, STANDIN_CUBLAS_PREFIX "gemm_128x128_nt")                                            \
    X(gemm_tn, STANDIN_CUBLAS_PREFIX "gemm_128x128_tn")                                            \
    X(gemm_tt, STANDIN_CUBLAS_PREFIX "gemm_128x128_tt")                                            \
    X(sgemm_nn, STANDIN_CUBLAS_PREFIX "sgemm_128x128_nn")                                          \
    X(sgemm_nt, STANDIN_CUBLAS_PREFIX "sgemm_128x128_nt")                                          \
    X(sgemm_tn, STANDIN_CUBLAS_PREFIX "sgemm_128x128_tn")                                          \
    X(sgemm_tt, STANDIN_CUBLAS_PREFIX "sgemm_128x128_tt")                                          \
    X(gemv, STANDIN_CUBLAS_PREFIX "gemv")                                                          \
    X(dot, STANDIN_CUBLAS_PREFIX "dot")
KERNELS_DEFINE(KERNELS)

enum { SUCCESS = 0, NOT_INITIALIZED = 1, ALLOC_FAILED = 3, INVALID_VALUE = 7, LAUNCH_FAILED = 13 };

enum { TF32_MATH = 3 }; /* CUBLAS_TF32_TENSOR_OP_MATH */
enum { TILE = 128, TILE_THREADS = 256, VECTOR_THREADS = 128 };

struct handle {
    cudaStream_t stream;
    int pointer_mode, math_mode;
};

static unsigned tiles(int64_t size)
{
    return size > 0 ? (unsigned)((size + TILE - 1) / TILE) : 1;
}

static int run(const struct handle *handle, void (*kernel)(void), dim3 grid, unsigned threads)
{
    const dim3 block = {threads, 1, 1};
    void *args[1] = {0};
    if (!handle)
        return NOT_INITIALIZED;
    cudaError_t error =
        cudaLaunchKernel((const void *)kernel, grid, block, args, 0, handle->stream);
    return error == cudaSuccess ? SUCCESS : LAUNCH_FAILED;
}

static int gemm(const struct handle *handle, bool has_tensor_cores, int trans_a, int trans_b,
                int64_t m, int64_t n, int64_t batch)
{
    static void (*const kernels[2][2][2])(void) = {{{sgemm_nn, sgemm_nt}, {sgemm_tn, sgemm_tt}},
                                                   {{gemm_nn, gemm_nt}, {gemm_tn, gemm_tt}}};
    if (m < 0 || n < 0 || batch < 0)
        return INVALID_VALUE;
    if (m == 0 || n == 0 || batch == 0)
        return SUCCESS;
    const dim3 grid = {tiles(m), tiles(n), (unsigned)batch};
    return run(handle, kernels[has_tensor_cores][trans_a != 0][trans_b != 0], grid, TILE_THREADS);
}

STANDIN int cublasCreate_v2(struct handle **handle)
{
    if (!handle)
        return INVALID_VALUE;
    *handle = calloc(1, sizeof **handle);
    return *handle ? SUCCESS : ALLOC_FAILED;
}

STANDIN int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return handle ? SUCCESS : NOT_INITIALIZED;
}

STANDIN int cublasSetStream_v2(struct handle *handle, cudaStream_t stream)
{
    if (!handle)
        return NOT_INITIALIZED;
    handle->stream = stream;
    return SUCCESS;
}

STANDIN int cublasSetWorkspace_v2(struct handle *handle, void *workspace, size_t bytes)
{
    (void)workspace;
    (void)bytes;
    return handle ? SUCCESS : NOT_INITIALIZED;
}

#define SETTING(name, type, member)                                                                \
    STANDIN int cublasSet##name(struct handle *handle, type value)                                 \
    {                                                                                              \
        if (!handle)                                                                               \
            return NOT_INITIALIZED;                                                                \
        handle->member = value;                                                                    \
        return SUCCESS;                                                                            \
    }                                                                                              \
    STANDIN int cublasGet##name(const struct handle *handle, type *value)                          \
    {                                                                                              \
        if (!handle || !value)                                                                     \
            return NOT_INITIALIZED;                                                                \
        *value = handle->member;                                                                   \
        return SUCCESS;                                                                            \
    }

SETTING(MathMode, int, math_mode)
SETTING(PointerMode_v2, int, pointer_mode)

/* Products of FP32 are made on tensor cores only if the caller allows for TF32. */
static bool is_tf32(const struct handle *handle)
{
    return handle && handle->math_mode == TF32_MATH;
}

STANDIN int cublasSgemm_v2(struct handle *handle, int trans_a, int trans_b, int m, int n)
{
    return gemm(handle, is_tf32(handle), trans_a, trans_b, m, n, 1);
}

STANDIN int cublasGemmEx(struct handle *handle, int trans_a, int trans_b, int m, int n)
{
    return gemm(handle, true, trans_a, trans_b, m, n, 1);
}

/* The number of matrices is the last but nothing, the type of the sum and the algorithm. */
STANDIN int cublasSgemmStridedBatched(struct handle *handle, int trans_a, int trans_b, int m, int n,
                                      int k, const float *alpha, const float *a, int lda,
                                      long long stride_a, const float *b, int ldb,
                                      long long stride_b, const float *beta, float *c, int ldc,
                                      long long stride_c, int count)
{
    return gemm(handle, is_tf32(handle), trans_a, trans_b, m, n, count);
}

STANDIN int cublasGemmStridedBatchedEx(struct handle *handle, int trans_a, int trans_b, int m,
                                       int n, int k, const void *alpha, const void *a, int type_a,
                                       int lda, long long stride_a, const void *b, int type_b,
                                       int ldb, long long stride_b, const void *beta, void *c,
                                       int type_c, int ldc, long long stride_c, int count,
                                       int compute, int algorithm)
{
    return gemm(handle, true, trans_a, trans_b, m, n, count);
}

STANDIN int cublasSgemv_v2(struct handle *handle, int trans, int m, int n)
{
    if (m < 0 || n < 0)
        return INVALID_VALUE;
    const dim3 grid = {tiles(trans ? n : m), 1, 1};
    return run(handle, gemv, grid, VECTOR_THREADS);
}

STANDIN int cublasSdot_v2(struct handle *handle, int count)
{
    const dim3 grid = {tiles(count), 1, 1};
    return run(handle, dot, grid, VECTOR_THREADS);
}
