/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcublas.so.12 whose function does nothing, and with -DLT a libcublasLt.so.12 with structures
 * of its own, which are asked as cublasLt's.
 */
#include "stub_cublas.h"

#include <string.h>

#ifdef LT

static int tell(const struct stub_structure *s, int attribute, void *value, size_t bytes,
                size_t *written)
{
    if (attribute < 0 || attribute >= STUB_ATTRIBUTES || bytes > sizeof *s->attributes)
        return 7;
    memcpy(value, &s->attributes[attribute], bytes);
    *written = bytes;
    return 0;
}

int cublasLtMatmulDescGetAttribute(const void *multiply, int attribute, void *value, size_t bytes,
                                   size_t *written)
{
    return tell(multiply, attribute, value, bytes, written);
}

int cublasLtMatrixLayoutGetAttribute(const void *layout, int attribute, void *value, size_t bytes,
                                     size_t *written)
{
    return tell(layout, attribute, value, bytes, written);
}

int cublasLtMatmul(void *handle, void *multiply, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const void *algo, void *workspace, size_t bytes,
                   void *stream)
{
    (void)handle, (void)multiply, (void)alpha, (void)a, (void)a_layout, (void)b, (void)b_layout;
    (void)beta, (void)c, (void)c_layout, (void)d, (void)d_layout, (void)algo, (void)workspace;
    (void)bytes, (void)stream;
    return 0;
}

#else

int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algo)
{
    (void)handle, (void)transa, (void)transb, (void)m, (void)n, (void)k, (void)alpha, (void)a;
    (void)a_type, (void)lda, (void)b, (void)b_type, (void)ldb, (void)beta, (void)c, (void)c_type;
    (void)ldc, (void)compute, (void)algo;
    return 0;
}

#endif
