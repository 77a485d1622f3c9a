/* SPDX-License-Identifier: Apache-2.0 */
/* Types and modes of matrix libraries as people write them: "bf16", "f32-fast-tf32". NULL: a value
 * that is not known. */
#ifndef GPUPROF_COLLECTOR_LIBRARY_TEXT_H
#define GPUPROF_COLLECTOR_LIBRARY_TEXT_H

#include <stdint.h>

const char *cuda_type_text(uint64_t type);       /* cudaDataType */
const char *compute_type_text(uint64_t compute); /* cublasComputeType_t */
const char *nccl_type_text(uint64_t type);       /* ncclDataType_t */
const char *nccl_op_text(uint64_t op);           /* ncclRedOp_t */
const char *transpose_text(uint64_t operation);  /* cublasOperation_t */

#endif
