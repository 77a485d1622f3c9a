/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments that stand in structures or arrays: what a row of api_cublas.def has in their place
 * says where to look, and what is found there takes that place.
 */
#ifndef GPUPROF_INJECT_CUBLAS_LOOKS_H
#define GPUPROF_INJECT_CUBLAS_LOOKS_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"

/* Is it a function of which arguments are to be looked for? */
#define CUBLAS_LOOKS(code, does)                                                                   \
    ((int)(code) == (int)API_CODE_cublasLtMatmul || (int)(does) == (int)API_DOES_GEMM_GROUPED)

/* The words of a call of such a function, whose real one is `real`, before that is called. False:
 * nothing is known of them, nor of those that stand there. */
bool cublas_look(unsigned code, uint64_t *words, const void *real);

#endif
