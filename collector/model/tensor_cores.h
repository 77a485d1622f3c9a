/* SPDX-License-Identifier: Apache-2.0 */
/* Tensor cores: which calls could use them, by type, and which kernels do, by name. */
#ifndef GPUPROF_COLLECTOR_TENSOR_CORES_H
#define GPUPROF_COLLECTOR_TENSOR_CORES_H

#include "model/library_shape.h"

enum tensor_use { TENSOR_UNKNOWN, TENSOR_USED, TENSOR_UNUSED, TENSOR_USES };

/* What the name of a kernel says; of most others than products, nothing. */
enum tensor_use tensor_use_of(const char *kernel);

/* May a product of these be made on tensor cores? Of f32 only where the call allows less exact
 * factors. f64 may on some devices: the answer is `doubles`. */
bool tensor_is_eligible(uint8_t type, uint16_t compute, bool doubles);

#endif
