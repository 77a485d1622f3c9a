/* SPDX-License-Identifier: Apache-2.0 */
#ifndef GPUPROF_FORMATS_API_ERROR_H
#define GPUPROF_FORMATS_API_ERROR_H

#include <stdint.h>

/* Returns the name of a library's result (enum api_domain); NULL for success and unknown codes. */
const char *api_error_name(unsigned domain, int32_t code);

#endif
