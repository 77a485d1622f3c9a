/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_driver.h"
#include "sim_driver_trace.h"

/* What a current context can be asked and told. */

#define WITH_CONTEXT(expression)                                                                   \
    ({                                                                                             \
        CUcontext context;                                                                         \
        CUresult result = context_current(&context);                                               \
        result == CUDA_SUCCESS ? (expression) : result;                                            \
    })

static CUresult store(void *pointer, int value)
{
    if (!pointer)
        return CUDA_ERROR_INVALID_VALUE;
    *(int *)pointer = value;
    return CUDA_SUCCESS;
}

static CUresult context_device(CUdevice *device, CUcontext context)
{
    CUresult result = CUDA_SUCCESS;
    if (!context)
        result = context_current(&context);
    else if (!context_check(context))
        result = CUDA_ERROR_INVALID_CONTEXT;
    return result == CUDA_SUCCESS ? store(device, context->device->ordinal) : result;
}

static CUresult context_limit(CUcontext context, CUlimit limit, size_t *get, const size_t *set)
{
    if ((unsigned)limit >= CU_LIMIT_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (get)
        *get = context->limits[limit];
    if (set)
        context->limits[limit] = *set;
    return CUDA_SUCCESS;
}

static CUresult context_number(CUcontext context, unsigned long long *id)
{
    if (!context) {
        CUresult result = context_current(&context);
        if (result != CUDA_SUCCESS)
            return result;
    } else if (!context_check(context)) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    *id = context->id;
    return CUDA_SUCCESS;
}

static CUresult context_priorities(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return CUDA_SUCCESS;
}

static CUresult context_peer(CUcontext peer, bool enable)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!context_check(peer) || peer->device == context->device)
        return CUDA_ERROR_INVALID_CONTEXT;
    unsigned bit = 1u << peer->device->ordinal;
    if (enable && (context->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
    if (!enable && !(context->peers & bit))
        return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
    context->peers ^= bit;
    return CUDA_SUCCESS;
}

DRV(cuCtxGetDevice, (CUdevice * device), context_device(device, NULL))
DRV(cuCtxGetDevice_v2, (CUdevice * device, CUcontext ctx), context_device(device, ctx), A_X(ctx))
DRV(cuCtxGetFlags, (unsigned *flags), WITH_CONTEXT(store(flags, (int)context->flags)))
DRV(cuCtxSetFlags, (unsigned flags), WITH_CONTEXT((context->flags = flags, CUDA_SUCCESS)))
DRV(cuCtxGetId, (CUcontext ctx, unsigned long long *id), context_number(ctx, id), A_X(ctx))
DRV(cuCtxGetApiVersion, (CUcontext ctx, unsigned *version), store(version, 3020), A_X(ctx))
DRV(cuCtxGetLimit, (size_t * value, CUlimit limit),
    WITH_CONTEXT(context_limit(context, limit, value, NULL)))
DRV(cuCtxSetLimit, (CUlimit limit, size_t value),
    WITH_CONTEXT(context_limit(context, limit, NULL, &value)), A_U(limit), A_U(value))
DRV(cuCtxGetCacheConfig, (CUfunc_cache * config),
    WITH_CONTEXT(store(config, (int)context->cache_config)))
DRV(cuCtxSetCacheConfig, (CUfunc_cache config),
    WITH_CONTEXT((context->cache_config = config, CUDA_SUCCESS)))
DRV(cuCtxGetSharedMemConfig, (CUsharedconfig * config), WITH_CONTEXT(store(config, 1)))
DRV(cuCtxSetSharedMemConfig, (CUsharedconfig config), WITH_CONTEXT(CUDA_SUCCESS))
DRV(cuCtxGetStreamPriorityRange, (int *least, int *greatest),
    WITH_CONTEXT(context_priorities(least, greatest)))
DRV(cuCtxResetPersistingL2Cache, (void), WITH_CONTEXT(CUDA_SUCCESS))
DRV(cuCtxEnablePeerAccess, (CUcontext peer, unsigned flags), context_peer(peer, true), A_X(peer))
DRV(cuCtxDisablePeerAccess, (CUcontext peer), context_peer(peer, false), A_X(peer))

static CUresult context_synchronize(CUcontext context)
{
    if (context && !context_check(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    CUresult result = CUDA_SUCCESS;
    if (!context)
        result = context_current(&context);
    if (result == CUDA_SUCCESS)
        result = capture_forbids_thread();
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t start_ns = sim_now_ns();
    result = context_wait(context);
    trace_sync(SIM_SYNC_CONTEXT, context, NULL, NULL, start_ns);
    return result;
}

DRV(cuCtxSynchronize, (void), context_synchronize(NULL))
DRV(cuCtxSynchronize_v2, (CUcontext ctx), context_synchronize(ctx), A_X(ctx))
