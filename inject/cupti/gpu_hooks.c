/* SPDX-License-Identifier: Apache-2.0 */
/* Hooks of the calls after which CUPTI can be started, and of the one after which it is gone. */
#include "cuda/cuda_abi.h"
#include "cupti/gpu.h"
#include "cupti/gpu_client.h"
#include "cupti/gpu_drain.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_stop.h"
#include "cupti/gpu_subscriber.h"
#include "hook/hook_real.h"

/*
 * Prototypes of the exported functions; none of our headers declares CUDA's or CUPTI's functions.
 */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

EXPORT CUresult cuInit(unsigned int Flags)
{
    __typeof__(&cuInit) real = HOOK_REAL(cuInit);
    if (!real)
        return CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
    gpu_client_initialises();
    CUresult result = real(Flags);
    gpu_client_initialised();
    if (result == CUDA_SUCCESS)
        gpu_cuda_runs();
    return result;
}

/* cuInit calls this in the library that CUDA_INJECTION64_PATH names. 1 means success. */
EXPORT int InitializeInjection(void);
EXPORT int InitializeInjection(void)
{
    if (!gpu_client_defers(gpu_watch))
        gpu_watch();
    return 1;
}

EXPORT int cuptiFinalize(void)
{
    __typeof__(&cuptiFinalize) real = HOOK_REAL(cuptiFinalize);
    uint32_t phase = atomic_load(&gpu.phase);
    if (phase == GPU_ACTIVE || phase == GPU_YIELDED) {
        gpu_drain(gp.settings.numbers[SETTING_EXIT_WAIT]);
        gpu_fail("another CUPTI client called cuptiFinalize");
    }
    gpu_subscriber_forget();
    return real ? real() : (int)CUPTI_ERROR_NOT_INITIALIZED;
}
