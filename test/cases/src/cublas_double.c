/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcublas.so.12, and with -DLT a libcublasLt.so.12, which write down what they are called with,
 * on the file descriptor of BLAS_LOG, as `function label=value ...`, and have the simulated device
 * do something. Prototypes and what is to be said of them are their own. By `algo` cublasGemmEx
 * calls itself or cublasLt, is left by longjmp, as libraries are by exceptions, or ends its thread.
 * As the real ones do, they look at the handle before anything else.
 */
#include <cuda_runtime.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CALLS_ITSELF = 99, IS_LEFT = 98, FAILS = 97, CALLS_LT = 96, ENDS_THREAD = 95 };
enum { NOT_INITIALIZED = 1, INVALID = 7 };

typedef int status;
typedef long long wide;

static void work(void)
{
    static _Thread_local void *memory;
    if (!memory)
        cudaMalloc(&memory, 4096);
    cudaMemsetAsync(memory, 0, 4096, NULL);
}

__attribute__((format(printf, 2, 3))) static status call(const char *function, const char *format,
                                                         ...)
{
    char line[512];
    const char *fd = getenv("BLAS_LOG");
    int length = snprintf(line, sizeof line, "%s ", function);
    va_list arguments;
    va_start(arguments, format);
    length += vsnprintf(line + length, sizeof line - (size_t)length - 1, format, arguments);
    va_end(arguments);
    line[length++] = '\n';
    if (fd && write(atoi(fd), line, (size_t)length) != length)
        abort();
    work();
    return 0;
}

#define FUNCTION(name, ...)                                                                        \
    status name(__VA_ARGS__);                                                                      \
    status name(__VA_ARGS__)
#define MATRICES(a, b, c) " a_type=" #a " b_type=" #b " c_type=" #c

#ifdef LT

/* The forms of these are nobody's business. */
struct multiply {
    double junk[3];
    int epilogue, trans_b, trans_a, compute;
};
struct layout {
    char junk[5];
    int batch;
    wide columns, rows;
    int type;
};

FUNCTION(cublasLtMatmulDescCreate, struct multiply **d, int compute, int scale)
{
    *d = calloc(1, sizeof **d);
    **d = (struct multiply){.compute = compute, .epilogue = 1};
    return scale < 0;
}

FUNCTION(cublasLtMatmulDescSetAttribute, struct multiply *d, int attribute, const int *value,
         size_t bytes)
{
    int *which[] = {[0] = &d->compute, [3] = &d->trans_a, [4] = &d->trans_b, [7] = &d->epilogue};
    *which[attribute] = *value;
    return bytes == sizeof(int) ? 0 : INVALID;
}

FUNCTION(cublasLtMatmulDescGetAttribute, const struct multiply *d, int attribute, void *value,
         size_t bytes, size_t *written)
{
    const int *which[] = {
        [0] = &d->compute, [3] = &d->trans_a, [4] = &d->trans_b, [7] = &d->epilogue};
    if (attribute < 0 || attribute > 7 || !which[attribute] || bytes != sizeof(int))
        return INVALID;
    memcpy(value, which[attribute], bytes);
    *written = bytes;
    return 0;
}

FUNCTION(cublasLtMatrixLayoutCreate, struct layout **l, int type, uint64_t rows, uint64_t columns,
         int64_t ld)
{
    *l = calloc(1, sizeof **l);
    **l = (struct layout){
        .type = type, .rows = (wide)rows, .columns = (wide)columns, .batch = (int)ld};
    return 0;
}

FUNCTION(cublasLtMatrixLayoutGetAttribute, const struct layout *l, int attribute, void *value,
         size_t bytes, size_t *written)
{
    uint64_t number;
    switch (attribute) {
    case 0: number = (uint64_t)l->type; break;
    case 2: number = (uint64_t)l->rows; break;
    case 3: number = (uint64_t)l->columns; break;
    case 5: number = (uint64_t)l->batch; break;
    default: return INVALID;
    }
    if (bytes != (attribute == 2 || attribute == 3 ? 8 : 4))
        return INVALID;
    memcpy(value, &number, bytes); /* of a processor that has the low half first */
    *written = bytes;
    return 0;
}

FUNCTION(cublasLtMatmul, void *handle, struct multiply *d, const void *alpha, const void *a,
         struct layout *a_layout, const void *b, struct layout *b_layout, const void *beta,
         const void *c, struct layout *c_layout, void *out, struct layout *d_layout,
         const void *algorithm, void *workspace, size_t bytes, cudaStream_t stream)
{
    if (!handle)
        return call(__func__, " "), NOT_INITIALIZED;
    if (alpha != beta || a == b || c == out || algorithm || workspace || bytes != 12345)
        return INVALID;
    return call(__func__,
                "handle=%p trans_a=%d trans_b=%d m=%lld n=%lld k=%lld batch=%d a_type=%d b_type=%d "
                "c_type=%d compute=%d d_type=%d epilogue=%d stream=%p",
                handle, d->trans_a, d->trans_b, d_layout->rows, d_layout->columns,
                d->trans_a ? a_layout->rows : a_layout->columns, d_layout->batch, a_layout->type,
                b_layout->type, c_layout->type, d->compute, d_layout->type, d->epilogue,
                (void *)stream);
}

#else

typedef status lt_matmul(void *, void *, const void *, const void *, void *, const void *, void *,
                         const void *, const void *, void *, void *, void *, const void *, void *,
                         size_t, void *);
lt_matmul cublasLtMatmul;

jmp_buf cublas_double_exit;

FUNCTION(cublasGemmEx, void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
         const void *a, int a_type, int lda, const void *b, int b_type, int ldb, const void *beta,
         void *c, int c_type, int ldc, int compute, int algo)
{
    static const void *const where[] = {&where[0], &where[1], &where[2]};
    if (alpha == beta || a == b || b == c || lda != m || ldb != m + 3 || ldc != m + 4)
        return 7;
    call(__func__,
         "handle=%p trans_a=%d trans_b=%d m=%d n=%d k=%d a_type=%d b_type=%d c_type=%d compute=%d",
         handle, transa, transb, m, n, k, a_type, b_type, c_type, compute);
    if (algo == CALLS_ITSELF)
        for (int i = 0; i < 2; i++)
            cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                         beta, c, c_type, ldc, compute, 0);
    if (algo == CALLS_LT) /* it knows what to make of these */
        return cublasLtMatmul(handle, NULL, where, where, NULL, where + 1, NULL, where, where + 2,
                              NULL, c, NULL, NULL, NULL, 1, NULL) != 7;
    if (algo == IS_LEFT)
        longjmp(cublas_double_exit, 1);
    if (algo == ENDS_THREAD)
        pthread_exit(NULL);
    return algo == FAILS ? 13 : 0;
}

#define PRODUCT_FORMAT " handle=%p trans_a=%d trans_b=%d m=%lld n=%lld k=%lld"
#define PRODUCT        handle, transa, transb, (wide)m, (wide)n, (wide)k

FUNCTION(cublasSgemm_v2, void *handle, int transa, int transb, int m, int n, int k,
         const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta,
         float *c, int ldc)
{
    if (*alpha != 2 || *beta != 3 || a == b || !c || lda + ldb + ldc != 3 * 77)
        return 7;
    return call(__func__, PRODUCT_FORMAT MATRICES(0, 0, 0), PRODUCT);
}

FUNCTION(cublasZgemm_v2_64, void *handle, int transa, int transb, wide m, wide n, wide k,
         const double *alpha, const double *a, wide lda, const double *b, wide ldb,
         const double *beta, double *c, wide ldc)
{
    if (*alpha != 2 || *beta != 3 || a == b || !c || lda + ldb + ldc != 3ll << 40)
        return 7;
    return call(__func__, PRODUCT_FORMAT MATRICES(5, 5, 5), PRODUCT);
}

FUNCTION(cublasGemmStridedBatchedEx, void *handle, int transa, int transb, int m, int n, int k,
         const void *alpha, const void *a, int a_type, int lda, wide a_stride, const void *b,
         int b_type, int ldb, wide b_stride, const void *beta, void *c, int c_type, int ldc,
         wide c_stride, int batch, int compute, int algo)
{
    if (alpha == beta || a == b || !c || lda + ldb + ldc != 3 * 77 || algo != -1 ||
        a_stride + b_stride + c_stride != 6ll << 40)
        return 7;
    return call(__func__, PRODUCT_FORMAT " batch=%d a_type=%d b_type=%d c_type=%d compute=%d",
                PRODUCT, batch, a_type, b_type, c_type, compute);
}

FUNCTION(cublasCgemmBatched, void *handle, int transa, int transb, int m, int n, int k,
         const float *alpha, const float *const *a, int lda, const float *const *b, int ldb,
         const float *beta, float *const *c, int ldc, int batch)
{
    if (*alpha != 2 || *beta != 3 || a == b || !c || lda + ldb + ldc != 3 * 77)
        return 7;
    return call(__func__, PRODUCT_FORMAT " batch=%d" MATRICES(4, 4, 4), PRODUCT, batch);
}

/* Of two groups at most. */
FUNCTION(cublasSgemmGroupedBatched, void *handle, const int *transa, const int *transb,
         const int *m, const int *n, const int *k, const float *alpha, const float *const *a,
         const int *lda, const float *const *b, const int *ldb, const float *beta, float *const *c,
         const int *ldc, int count, const int *sizes)
{
    wide mnk = 0, batch = 0;
    int last = count - 1;
    if (!handle)
        return call(__func__, " "), NOT_INITIALIZED;
    if (!transa || !transb || !alpha || !beta || !a || !b || !c || !lda || !ldb || !ldc)
        return 7;
    for (int i = 0; i < count; i++) {
        mnk += (wide)m[i] * n[i] * k[i] * sizes[i];
        batch += sizes[i];
    }
    return call(__func__,
                "handle=%p groups=%d batch=%lld m=%d n=%d k=%d mnk=%lld" MATRICES(0, 0, 0), handle,
                count, batch, m[0] == m[last] ? m[0] : 0, n[0] == n[last] ? n[0] : 0,
                k[0] == k[last] ? k[0] : 0, mnk);
}

FUNCTION(cublasGemmGroupedBatchedEx_64, void *handle, const int *transa, const int *transb,
         const wide *m, const wide *n, const wide *k, const void *alpha, const void *const *a,
         int a_type, const wide *lda, const void *const *b, int b_type, const wide *ldb,
         const void *beta, void *const *c, int c_type, const wide *ldc, wide count,
         const wide *sizes, int compute)
{
    wide mnk = 0, batch = 0, last = count - 1;
    if (!handle)
        return call(__func__, " "), NOT_INITIALIZED;
    if (!transa || !transb || !alpha || !beta || !a || !b || !c || !lda || !ldb || !ldc)
        return 7;
    for (wide i = 0; i < count; i++) {
        mnk += m[i] * n[i] * k[i] * sizes[i];
        batch += sizes[i];
    }
    return call(
        __func__,
        "handle=%p groups=%lld batch=%lld m=%lld n=%lld k=%lld mnk=%lld a_type=%d b_type=%d "
        "c_type=%d compute=%d",
        handle, count, batch, m[0] == m[last] ? m[0] : 0, n[0] == n[last] ? n[0] : 0,
        k[0] == k[last] ? k[0] : 0, mnk, a_type, b_type, c_type, compute);
}

/* A matrix of `rows` by `columns`, turned or not, by a vector. */
FUNCTION(cublasDgemv_v2, void *handle, int trans, int rows, int columns, const double *alpha,
         const double *a, int lda, const double *x, int incx, const double *beta, double *y,
         int incy)
{
    if (*alpha != 2 || *beta != 3 || !a || !x || !y || lda != 77 || incx + incy != 2)
        return 7;
    return call(__func__, "handle=%p trans_a=%d m=%d n=1 k=%d" MATRICES(1, 1, 1), handle, trans,
                trans ? columns : rows, trans ? rows : columns);
}

FUNCTION(cublasHSSgemvStridedBatched_64, void *handle, int trans, wide rows, wide columns,
         const float *alpha, const void *a, wide lda, wide a_stride, const void *x, wide incx,
         wide x_stride, const float *beta, float *y, wide incy, wide y_stride, wide batch)
{
    if (*alpha != 2 || *beta != 3 || !a || !x || !y || lda != 77 || incx + incy != 2 ||
        a_stride + x_stride + y_stride != 6ll << 40)
        return 7;
    return call(__func__, "handle=%p trans_a=%d m=%lld n=1 k=%lld batch=%lld" MATRICES(2, 2, 0),
                handle, trans, trans ? columns : rows, trans ? rows : columns, batch);
}

FUNCTION(cublasZdotc_v2, void *handle, int n, const double *x, int incx, const double *y, int incy,
         double *result)
{
    if (x == y || incx + incy != 2 || !result)
        return 7;
    return call(__func__, "handle=%p m=1 n=1 k=%d" MATRICES(5, 5, 5), handle, n);
}

FUNCTION(cublasSsymm_v2, void *handle, int side, int uplo, int m, int n, const float *alpha,
         const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc)
{
    if (*alpha != 2 || *beta != 3 || a == b || !c || lda + ldb + ldc != 3 * 77 || uplo != 1)
        return 7;
    return call(__func__, "handle=%p m=%d n=%d k=%d" MATRICES(0, 0, 0), handle, m, n,
                side == 0 ? m : n);
}

FUNCTION(cublasCtrsmBatched, void *handle, int side, int uplo, int trans, int diag, int m, int n,
         const float *alpha, const float *const *a, int lda, float *const *b, int ldb, int batch)
{
    if (*alpha != 2 || !a || !b || lda + ldb != 2 * 77 || uplo != 1 || diag != 0)
        return 7;
    return call(__func__, "handle=%p side=%d trans_a=%d m=%d n=%d batch=%d a_type=4 b_type=4",
                handle, side, trans, m, n, batch);
}

FUNCTION(cublasSgetrsBatched, void *handle, int trans, int n, int nrhs, const float *const *a,
         int lda, const int *pivots, float *const *b, int ldb, int *info, int batch)
{
    if (trans != 1 || !a || !b || lda + ldb != 2 * 77 || !pivots || !info)
        return 7;
    return call(__func__, "handle=%p n=%d nrhs=%d batch=%d a_type=0", handle, n, nrhs, batch);
}

#endif
