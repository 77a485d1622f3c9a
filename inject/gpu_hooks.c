/* SPDX-License-Identifier: Apache-2.0 */
/* The wrapper of the call after which CUPTI can be started. */
#include "cuda_abi.h"
#include "gpu.h"
#include "hook_real.h"

/* Prototypes of what is exported: no header of ours declares CUDA's functions. */
#define HOOK(id, symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api.def"

EXPORT CUresult cuInit(unsigned int Flags)
{
    __typeof__(&cuInit) real = HOOK_REAL(cuInit, API_DRIVER);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    CUresult result = real(Flags);
    if (result == CUDA_SUCCESS)
        gpu_cuda_runs();
    return result;
}
