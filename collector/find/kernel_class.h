/* SPDX-License-Identifier: Apache-2.0 */
/* What a kernel's name says that it does: names are all that a recording has of its code. */
#ifndef GPUPROF_COLLECTOR_KERNEL_CLASS_H
#define GPUPROF_COLLECTOR_KERNEL_CLASS_H

#include "symbol/kernel_names.h"

enum kernel_class {
    KERNEL_PLAIN,
    KERNEL_COMMUNICATION, /* it moves data between devices */
    KERNEL_FP32_GEMM,     /* a product of matrices, or a convolution, without tensor cores */
    KERNEL_ELEMENTWISE,   /* it reads and writes each element once */
};

enum kernel_class kernel_class_of(const struct kernel_name *name);

#endif
