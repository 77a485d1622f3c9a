/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands between a launch and the program's line that makes it, in the program itself and with
 * lines of its files. For kernel<<<...>>>(values) nvcc has, the innermost last:
 *
 * - kernel(float*), which is the kernel on the host, with its line;
 * - of a template also __wrapper__device_stub_kernel<int>(...);
 * - __device_stub__Z6kernelPf(float*);
 * - from CUDA 13 on __cudaLaunchKernel_helper(...), of crt/device_functions.h;
 *
 * and clang __device_stub__kernel(float*), with the kernel's line.
 *
 * For calls by name there are the templates of cuda_runtime.h, and within the static runtime, which
 * nvcc takes unless told otherwise, its functions, which have no lines.
 */
#ifndef GPUPROF_COLLECTOR_CUDA_STUB_H
#define GPUPROF_COLLECTOR_CUDA_STUB_H

#include <stdbool.h>

#include "symbol/kernel_names.h"

/* Is the function one of these? `file`: where its line is, `called`: the function that it called;
 * each may be NULL: not known. */
bool cuda_stub(const struct kernel_name *function, const struct kernel_name *file,
               const struct kernel_name *called);

#endif
