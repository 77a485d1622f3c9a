/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The wrappers of functions that change a thread's device. They are not recorded. Runtime functions
 * that only prepare a device (cudaInitDevice, cudaSetValidDevices) change it through these, inside
 * the call that needs it.
 */
#include "cuda/cuda_abi.h"
#include "cuda/current_device.h"
#include "hook/hook_real.h"

/* Prototypes of the exported functions; none of our headers declares CUDA's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

#define FOLLOWED(symbol, returns, missing, params, names, what)                                    \
    EXPORT returns symbol params                                                                   \
    {                                                                                              \
        __typeof__(&symbol) real = HOOK_REAL(symbol);                                              \
        returns result = real ? real names : missing;                                              \
        if (result == 0)                                                                           \
            what;                                                                                  \
        return result;                                                                             \
    }
#define DRIVER_FOLLOWED(symbol, params, names, what)                                               \
    FOLLOWED(symbol, CUresult, CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, params, names, what)

static void note(CUcontext *context, CUdevice device)
{
    if (context)
        device_note(*context, device);
}

/* Follows a new context, which is now current. */
static void created(CUcontext *context, CUdevice device)
{
    if (!context)
        return;
    device_note(*context, device);
    device_push(*context);
}

/* clang-format off */
FOLLOWED(cudaSetDevice, cudaError_t, cudaErrorSharedObjectSymbolNotFound, (int device), (device),
         device_set(device))
DRIVER_FOLLOWED(cuCtxCreate, (CUcontext *pctx, unsigned int flags, CUdevice dev),
                (pctx, flags, dev), created(pctx, dev))
DRIVER_FOLLOWED(cuCtxCreate_v2, (CUcontext *pctx, unsigned int flags, CUdevice dev),
                (pctx, flags, dev), created(pctx, dev))
DRIVER_FOLLOWED(cuCtxCreate_v3, (CUcontext *pctx, CUexecAffinityParam *paramsArray, int numParams,
                 unsigned int flags, CUdevice dev), (pctx, paramsArray, numParams, flags, dev),
                created(pctx, dev))
DRIVER_FOLLOWED(cuCtxCreate_v4, (CUcontext *pctx, CUctxCreateParams *ctxCreateParams,
                 unsigned int flags, CUdevice dev), (pctx, ctxCreateParams, flags, dev),
                created(pctx, dev))
DRIVER_FOLLOWED(cuCtxPushCurrent, (CUcontext ctx), (ctx), device_push(ctx))
DRIVER_FOLLOWED(cuCtxPushCurrent_v2, (CUcontext ctx), (ctx), device_push(ctx))
DRIVER_FOLLOWED(cuCtxPopCurrent, (CUcontext *pctx), (pctx), device_pop())
DRIVER_FOLLOWED(cuCtxPopCurrent_v2, (CUcontext *pctx), (pctx), device_pop())
DRIVER_FOLLOWED(cuCtxSetCurrent, (CUcontext ctx), (ctx), device_replace(ctx))
DRIVER_FOLLOWED(cuDevicePrimaryCtxRetain, (CUcontext *pctx, CUdevice dev), (pctx, dev),
                note(pctx, dev))
DRIVER_FOLLOWED(cuGreenCtxCreate, (CUgreenCtx *phCtx, CUdevResourceDesc desc, CUdevice dev,
                 unsigned int flags), (phCtx, desc, dev, flags), note((CUcontext *)phCtx, dev))
DRIVER_FOLLOWED(cuCtxFromGreenCtx, (CUcontext *pContext, CUgreenCtx hCtx), (pContext, hCtx),
                note(pContext, device_of(hCtx)))
/* clang-format on */
