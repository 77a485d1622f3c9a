/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

struct sim_pool pool_contexts = SIM_POOL(struct CUctx_st, 4096);

/* The contexts pushed by a thread; the serial tells whether one died meanwhile. */
static __thread struct {
    CUcontext contexts[CONTEXT_STACK_MAX];
    uint64_t serials[CONTEXT_STACK_MAX];
    unsigned depth;
} stack __attribute__((tls_model("initial-exec")));

CUcontext context_check(CUcontext context)
{
    return sim_pool_has(&pool_contexts, context) ? context : NULL;
}

CUcontext context_current_or_null(void)
{
    if (stack.depth == 0)
        return NULL;
    CUcontext context = stack.contexts[stack.depth - 1];
    return context_check(context) && context->serial == stack.serials[stack.depth - 1] ? context
                                                                                       : NULL;
}

int context_ordinal(void)
{
    CUcontext context = context_current_or_null();
    return context ? context->device->ordinal : 0;
}

CUresult context_current(CUcontext *context)
{
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    *context = context_current_or_null();
    if (!*context)
        return stack.contexts[stack.depth - 1] ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                               : CUDA_ERROR_INVALID_CONTEXT;
    return (CUresult)__atomic_load_n(&(*context)->sticky, __ATOMIC_RELAXED);
}

static CUresult context_push(CUcontext context)
{
    if (!context_check(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth == CONTEXT_STACK_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    stack.contexts[stack.depth] = context;
    stack.serials[stack.depth++] = context->serial;
    return CUDA_SUCCESS;
}

static CUresult context_pop(CUcontext *context)
{
    if (stack.depth == 0)
        return CUDA_ERROR_INVALID_CONTEXT;
    stack.depth--;
    if (context)
        *context = stack.contexts[stack.depth];
    return CUDA_SUCCESS;
}

static CUresult context_set(CUcontext context)
{
    if (!context) {
        if (stack.depth)
            stack.depth--;
        return CUDA_SUCCESS;
    }
    if (!context_check(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (stack.depth)
        stack.depth--;
    return context_push(context);
}

static CUresult context_get(CUcontext *context)
{
    if (!context)
        return CUDA_ERROR_INVALID_VALUE;
    *context = stack.depth ? stack.contexts[stack.depth - 1] : NULL;
    return CUDA_SUCCESS;
}

static CUcontext context_make(struct sim_device *device, unsigned flags)
{
    CUcontext context = sim_pool_get(&pool_contexts);
    if (!context)
        return NULL;
    context->device = device;
    context->flags = flags;
    context->attach_count = 1;
    context->id = context->serial = driver_serial();
    pthread_mutex_init(&context->lock, NULL);
    context->limits[CU_LIMIT_STACK_SIZE] = 1024;
    context->limits[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20;
    context->limits[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20;
    context->legacy = stream_make(context, CU_STREAM_DEFAULT, 0);
    trace_context(SIM_CONTEXT_CREATED, context);
    return context;
}

static void context_discard(CUcontext context)
{
    context_wait(context);
    trace_context(SIM_CONTEXT_DESTROY, context);
    while (context->streams)
        stream_discard(context->streams);
    sim_pool_put(&pool_streams, context->legacy);
    memory_context_release(context);
    sim_pool_put(&pool_contexts, context);
}

CUresult context_primary(struct sim_device *device, CUcontext *context)
{
    pthread_mutex_lock(&device->lock);
    if (!device->primary) {
        device->primary = context_make(device, device->primary_flags);
        if (device->primary)
            device->primary->primary = true;
    }
    *context = device->primary;
    device->primary_count += device->primary != NULL;
    pthread_mutex_unlock(&device->lock);
    return *context ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult context_create(CUcontext *context, unsigned flags, CUdevice ordinal)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result == CUDA_SUCCESS && !context)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result != CUDA_SUCCESS)
        return result;
    *context = context_make(device, flags);
    if (!*context)
        return CUDA_ERROR_OUT_OF_MEMORY;
    return context_push(*context);
}

static CUresult context_destroy(CUcontext context)
{
    if (!context_check(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    if (context == context_current_or_null())
        context_pop(NULL);
    context_discard(context);
    return CUDA_SUCCESS;
}

static CUresult context_detach(CUcontext context)
{
    if (!context_check(context) || context->primary)
        return CUDA_ERROR_INVALID_CONTEXT;
    return --context->attach_count ? CUDA_SUCCESS : context_destroy(context);
}

static CUresult context_attach(CUcontext *context)
{
    CUresult result = context ? context_current(context) : CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        (*context)->attach_count++;
    return result;
}

#define A_OF(ctx) A_KU("device", context_check(ctx) ? (ctx)->device->ordinal : -1)

DRV(cuCtxCreate, (CUcontext * context, unsigned flags, CUdevice device),
    context_create(context, flags, device), A_OUT("ctx", context), A_U(flags), A_U(device))
DRV(cuCtxCreate_v2, (CUcontext * context, unsigned flags, CUdevice device),
    context_create(context, flags, device), A_OUT("ctx", context), A_U(flags), A_U(device))
DRV(cuCtxCreate_v3,
    (CUcontext * context, CUexecAffinityParam *affinity, int count, unsigned flags,
     CUdevice device),
    context_create(context, flags, device), A_OUT("ctx", context), A_U(flags), A_U(device))
DRV(cuCtxCreate_v4,
    (CUcontext * context, CUctxCreateParams *params, unsigned flags, CUdevice device),
    context_create(context, flags, device), A_OUT("ctx", context), A_U(flags), A_U(device))
DRV(cuCtxDestroy, (CUcontext ctx), context_destroy(ctx), A_KX("handle", ctx), A_OF(ctx))
DRV(cuCtxDestroy_v2, (CUcontext ctx), context_destroy(ctx), A_KX("handle", ctx), A_OF(ctx))
DRV(cuCtxAttach, (CUcontext * context, unsigned flags), context_attach(context))
DRV(cuCtxDetach, (CUcontext ctx), context_detach(ctx), A_X(ctx))
DRV(cuCtxPushCurrent_v2, (CUcontext ctx), context_push(ctx), A_X(ctx))
DRV(cuCtxPushCurrent, (CUcontext ctx), context_push(ctx), A_X(ctx))
DRV(cuCtxPopCurrent_v2, (CUcontext * context), context_pop(context))
DRV(cuCtxPopCurrent, (CUcontext * context), context_pop(context))
DRV(cuCtxSetCurrent, (CUcontext ctx), context_set(ctx), A_X(ctx))
DRV(cuCtxGetCurrent, (CUcontext * context), context_get(context))

CUresult primary_release(CUdevice ordinal, bool reset)
{
    struct sim_device *device;
    CUcontext gone = NULL;
    CUresult result = driver_device(ordinal, &device);
    if (result != CUDA_SUCCESS)
        return result;
    pthread_mutex_lock(&device->lock);
    if (!reset && device->primary_count == 0)
        result = CUDA_ERROR_INVALID_CONTEXT;
    else if (reset || --device->primary_count == 0) {
        gone = device->primary;
        device->primary = NULL;
        device->primary_count = 0;
    }
    pthread_mutex_unlock(&device->lock);
    if (gone)
        context_discard(gone);
    return result;
}

static CUresult primary_retain(CUcontext *context, CUdevice ordinal)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result != CUDA_SUCCESS)
        return result;
    return context ? context_primary(device, context) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult primary_flags(CUdevice ordinal, unsigned flags)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result == CUDA_SUCCESS) {
        device->primary_flags = flags;
        if (device->primary)
            device->primary->flags = flags;
    }
    return result;
}

static CUresult primary_state(CUdevice ordinal, unsigned *flags, int *active)
{
    struct sim_device *device;
    CUresult result = driver_device(ordinal, &device);
    if (result == CUDA_SUCCESS && (!flags || !active))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        *flags = device->primary_flags;
        *active = device->primary != NULL;
    }
    return result;
}

DRV(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device),
    primary_retain(context, device), A_OUT("ctx", context), A_U(device))
DRV(cuDevicePrimaryCtxRelease, (CUdevice device), primary_release(device, false), A_U(device))
DRV(cuDevicePrimaryCtxRelease_v2, (CUdevice device), primary_release(device, false), A_U(device))
DRV(cuDevicePrimaryCtxReset, (CUdevice device), primary_release(device, true), A_U(device))
DRV(cuDevicePrimaryCtxReset_v2, (CUdevice device), primary_release(device, true), A_U(device))
DRV(cuDevicePrimaryCtxSetFlags, (CUdevice device, unsigned flags), primary_flags(device, flags),
    A_U(device), A_U(flags))
DRV(cuDevicePrimaryCtxSetFlags_v2, (CUdevice device, unsigned flags), primary_flags(device, flags),
    A_U(device), A_U(flags))
DRV(cuDevicePrimaryCtxGetState, (CUdevice device, unsigned *flags, int *active),
    primary_state(device, flags, active), A_U(device))
