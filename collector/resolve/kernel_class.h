/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Classifies kernels by name, and says whether they use tensor cores: a recording has only the
 * names of kernels, not their code.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_CLASS_H
#define GPUPROF_COLLECTOR_KERNEL_CLASS_H

#include "flops/library_flops.h"
#include "symbol/kernel_names.h"

enum kernel_class {
    KERNEL_PLAIN,
    KERNEL_COMMUNICATION, /* moves data between devices */
    KERNEL_FP32_GEMM,     /* matrix product or convolution without tensor cores */
    KERNEL_ELEMENTWISE,   /* reads and writes each element once */
};

enum kernel_class kernel_class_of(const struct kernel_name *name);

enum tensor_use { TENSOR_UNKNOWN, TENSOR_USED, TENSOR_UNUSED, TENSOR_USES };

/* Tensor core use by the name of a kernel; mostly unknown, except for matrix products. */
enum tensor_use tensor_use_of(const char *kernel);

/* Whether tensor cores can compute a product of this type: f32 only if the call allows less exact
 * factors, f64 if `doubles`, as some devices can. */
bool tensor_is_eligible(uint8_t type, uint16_t compute, bool doubles);

#endif
