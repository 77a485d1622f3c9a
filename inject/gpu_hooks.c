/* SPDX-License-Identifier: Apache-2.0 */
/* The calls after which CUPTI can be started. */
#include "cuda_abi.h"
#include "gpu.h"
#include "hook_real.h"
#include "thread.h"

/* Prototypes of what is exported: no header of ours declares CUDA's functions. */
#define HOOK(id, symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api.def"

static _Thread_local bool was_loaded; /* by the driver, while in_init */

EXPORT CUresult cuInit(unsigned int Flags)
{
    __typeof__(&cuInit) real = HOOK_REAL(cuInit, API_DRIVER);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    this_thread.in_init = true; /* the driver's load of us is no news then */
    CUresult result = real(Flags);
    this_thread.in_init = was_loaded = false;
    if (result == CUDA_SUCCESS)
        gpu_cuda_runs();
    return result;
}

void gpu_client_calls(void)
{
    this_thread.in_init = true;
}

int gpu_client_called(int result)
{
    this_thread.in_init = false;
    if (was_loaded) {
        was_loaded = false;
        gpu_watch();
    }
    return result;
}

/* What the driver calls in the library that CUDA_INJECTION64_PATH names, in cuInit. 1: well. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
    if (this_thread.in_init)
        was_loaded = true;
    else
        gpu_watch();
    return 1;
}
