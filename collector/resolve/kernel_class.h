/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a kernel's name says that it does, and whether on tensor cores: names are all that a
 * recording has of its code.
 */
#ifndef GPUPROF_COLLECTOR_KERNEL_CLASS_H
#define GPUPROF_COLLECTOR_KERNEL_CLASS_H

#include "flops/library_flops.h"
#include "symbol/kernel_names.h"

enum kernel_class {
    KERNEL_PLAIN,
    KERNEL_COMMUNICATION, /* it moves data between devices */
    KERNEL_FP32_GEMM,     /* a product of matrices, or a convolution, without tensor cores */
    KERNEL_ELEMENTWISE,   /* it reads and writes each element once */
};

enum kernel_class kernel_class_of(const struct kernel_name *name);

enum tensor_use { TENSOR_UNKNOWN, TENSOR_USED, TENSOR_UNUSED, TENSOR_USES };

/* What the name of a kernel says; of most others than products, nothing. */
enum tensor_use tensor_use_of(const char *kernel);

/* May a product of these be made on tensor cores? Of f32 only where the call allows less exact
 * factors. f64 may on some devices: the answer is `doubles`. */
bool tensor_is_eligible(uint8_t type, uint16_t compute, bool doubles);

#endif
