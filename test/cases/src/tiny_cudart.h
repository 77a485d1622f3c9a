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
int cudaGetDeviceCount(int *count);

#ifdef __cplusplus
}
#endif

#endif
