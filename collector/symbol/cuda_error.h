/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_COLLECTOR_CUDA_ERROR_H
#define GPUPROF_COLLECTOR_CUDA_ERROR_H

#include <stdint.h>

/* The name of a result code of that API (enum api_domain); NULL for success and unknown codes. */
const char *cuda_error_name(unsigned domain, int32_t code);

#endif
