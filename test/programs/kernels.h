/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_KERNELS_H
#define TEST_KERNELS_H

/*
 * Kernels for test programs in plain C. What nvcc generates for a __global__ function is a host
 * stub, whose address stands for the kernel, and a constructor that registers it. KERNELS_DEFINE
 * makes both for a whole list:
 *
 *     #define KERNELS(X) X(gemm, "_Z4gemmPKfS0_Pfi") X(adam, "_Z4adamPfS_S_fi")
 *     KERNELS_DEFINE(KERNELS)
 *
 * and launch(gemm, grid, block, shared, stream) launches one.
 */

#include <cuda_runtime.h>

/* An image is a wrapper with a magic number that points to the code; the simulation has none. */
struct kernel_image {
    int magic, version;
    const void *code;
    const char *file;
};

struct kernel_row {
    const void *host;
    const char *name;
};

/* Each stub has an address of its own; the linker must not fold them. */
#define KERNEL_STUB(symbol)                                                                        \
    __attribute__((used, noinline)) static void symbol(void)                                       \
    {                                                                                              \
        __asm__ volatile("");                                                                      \
    }

#define KERNELS_REGISTER(rows)                                                                     \
    static void **kernels_handle;                                                                  \
    __attribute__((destructor)) static void kernels_unregister(void)                               \
    {                                                                                              \
        __cudaUnregisterFatBinary(kernels_handle);                                                 \
    }                                                                                              \
    __attribute__((constructor)) static void kernels_register(void)                                \
    {                                                                                              \
        static const char code[] = "simulated code";                                               \
        static struct kernel_image image = {0x466243b1, 1, code, 0};                               \
        kernels_handle = __cudaRegisterFatBinary(&image);                                          \
        for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)                                \
            __cudaRegisterFunction(kernels_handle, (const char *)rows[i].host,                     \
                                   (char *)(size_t)rows[i].name, rows[i].name, -1, 0, 0, 0, 0, 0); \
        __cudaRegisterFatBinaryEnd(kernels_handle);                                                \
    }

#define KERNEL_DEFINE_STUB(symbol, mangled) KERNEL_STUB(symbol)
#define KERNEL_DEFINE_ROW(symbol, mangled)  {(const void *)symbol, mangled},
#define KERNELS_DEFINE(list)                                                                       \
    list(KERNEL_DEFINE_STUB) static const struct kernel_row kernel_rows[] = {                      \
        list(KERNEL_DEFINE_ROW)};                                                                  \
    KERNELS_REGISTER(kernel_rows)

/* Arguments do not matter: the simulation looks at none. */
static inline cudaError_t launch(void (*kernel)(void), unsigned grid, unsigned block, size_t shared,
                                 cudaStream_t stream)
{
    dim3 grid_dim = {grid, 1, 1}, block_dim = {block, 1, 1};
    void *args[1] = {0};
    return cudaLaunchKernel((const void *)kernel, grid_dim, block_dim, args, shared, stream);
}

#endif
