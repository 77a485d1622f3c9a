/* SPDX-License-Identifier: Apache-2.0 */
/* Reads arguments that are inside structures or arrays. The row of api_cublas.def has words that
 * say where to look; what is found replaces them. */
#ifndef GPUPROF_INJECT_CUBLAS_LOOKS_H
#define GPUPROF_INJECT_CUBLAS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* Does this function have such arguments? */
#define CUBLAS_LOOKS(code, does)                                                                   \
    ((int)(code) == (int)API_CODE_cublasLtMatmul || (int)(does) == (int)API_DOES_GEMM_GROUPED)

/* Replaces the words of a call of such a function before the real one, `real`, is called. Returns
 * false if nothing is known of them; the words are invalid then. */
bool cublas_look(unsigned code, uint64_t *words, const void *real);

#endif
