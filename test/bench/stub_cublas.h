/* SPDX-License-Identifier: Apache-2.0 */
/* The few functions of cuBLAS that the benches call. */
#ifndef GPUPROF_BENCH_STUB_CUBLAS_H
#define GPUPROF_BENCH_STUB_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#define STUB_ATTRIBUTES 8

struct stub_structure { /* of a product, or of a matrix's layout */
    uint64_t attributes[STUB_ATTRIBUTES];
};

int cublasLtMatmulDescGetAttribute(const void *multiply, int attribute, void *value, size_t bytes,
                                   size_t *written);
int cublasLtMatrixLayoutGetAttribute(const void *layout, int attribute, void *value, size_t bytes,
                                     size_t *written);
int cublasLtMatmul(void *handle, void *multiply, const void *alpha, const void *a, void *a_layout,
                   const void *b, void *b_layout, const void *beta, const void *c, void *c_layout,
                   void *d, void *d_layout, const void *algo, void *workspace, size_t bytes,
                   void *stream);
int cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                 const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                 const void *beta, void *c, int c_type, int ldc, int compute, int algo);

#endif
