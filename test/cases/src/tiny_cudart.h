/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of tiny_cudart.c. */
#ifndef TINY_CUDART_H
#define TINY_CUDART_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

extern void (*tiny_during)(const char *symbol, uint64_t argument);

int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);
int cudaMemset(void *memory, int value, size_t bytes);
int cudaStreamSynchronize(void *stream);
int cudaDeviceSynchronize(void);
int cudaStreamBeginCapture(void *stream, int mode);
struct tiny_dim3 {
    unsigned x, y, z;
};

int cudaLaunchKernel(const void *function, struct tiny_dim3 grid, struct tiny_dim3 block,
                     void **arguments, size_t shared, void *stream);
int cudaLaunchKernelExC(const void *config, const void *function, void **arguments);
void __cudaRegisterFunction(void **module, const char *function, char *device_function,
                            const char *name, int limit, void *thread, void *block,
                            void *block_size, void *grid_size, int *warp);
int cudaGetDeviceCount(int *count);

#ifdef __cplusplus
}
#endif

#endif
