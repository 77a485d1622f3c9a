/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_FORMATS_API_ERROR_H
#define GPUPROF_FORMATS_API_ERROR_H

#include <stdint.h>

/* The name of a result of that library's (enum api_domain); NULL for success and unknown codes. */
const char *api_error_name(unsigned domain, int32_t code);

#endif
