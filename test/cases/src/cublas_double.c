/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A libcublas.so.12 that writes down what it is called with, on the file descriptor of BLAS_LOG,
 * and has the simulated device do something. Its prototypes are its own. By `algo` it calls itself,
 * or is left by longjmp, as libraries are by exceptions.
 */
#include <cuda_runtime.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { CALLS_ITSELF = 99, IS_LEFT = 98, FAILS = 97 };

typedef int status;
jmp_buf cublas_double_exit;

static void work(void)
{
    static _Thread_local void *memory;
    if (!memory)
        cudaMalloc(&memory, 4096);
    cudaMemsetAsync(memory, 0, 4096, NULL);
}

#define LOG(format, ...)                                                                           \
    do {                                                                                           \
        char line[256];                                                                            \
        const char *fd = getenv("BLAS_LOG");                                                       \
        int length = snprintf(line, sizeof line, "%s " format "\n", __func__, __VA_ARGS__);        \
        if (fd && write(atoi(fd), line, (size_t)length) != length)                                 \
            abort();                                                                               \
    } while (0)

status cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                    const void *beta, void *c, int c_type, int ldc, int compute, int algo);
status cublasGemmEx(void *handle, int transa, int transb, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int lda, const void *b, int b_type, int ldb,
                    const void *beta, void *c, int c_type, int ldc, int compute, int algo)
{
    LOG("%p %d %d %d %d %d %p %p %d %d %p %d %d %p %p %d %d %d %d", handle, transa, transb, m, n, k,
        alpha, a, a_type, lda, b, b_type, ldb, beta, c, c_type, ldc, compute, algo);
    if (algo == CALLS_ITSELF)
        for (int i = 0; i < 2; i++)
            cublasGemmEx(handle, transa, transb, m, n, k, alpha, a, a_type, lda, b, b_type, ldb,
                         beta, c, c_type, ldc, compute, 0);
    work();
    if (algo == IS_LEFT)
        longjmp(cublas_double_exit, 1);
    return algo == FAILS ? 13 : 0;
}
