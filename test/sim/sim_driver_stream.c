/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <time.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

enum { STREAM_COUNT_MAX = 1 << 18, THREAD_STREAMS_MAX = 8, SPIN_NS = 60000 };

struct sim_pool pool_streams = SIM_POOL(struct CUstream_st, STREAM_COUNT_MAX);

/* Each thread's own default stream in each context it has used. */
static __thread struct {
    CUcontext context;
    uint64_t serial;
    CUstream stream;
} thread_streams[THREAD_STREAMS_MAX];

CUstream stream_make(CUcontext context, unsigned flags, int priority)
{
    CUstream stream = sim_pool_get(&pool_streams);
    if (!stream)
        return NULL;
    stream->context = context;
    stream->flags = flags;
    stream->priority = priority;
    stream->id = driver_serial();
    pthread_mutex_init(&stream->lock, NULL);
    return stream;
}

static void stream_link(CUstream stream)
{
    CUcontext context = stream->context;
    pthread_mutex_lock(&context->lock);
    stream->next = context->streams;
    context->streams = stream;
    pthread_mutex_unlock(&context->lock);
    trace_stream(SIM_STREAM_CREATED, stream);
}

void stream_discard(CUstream stream)
{
    CUcontext context = stream->context;
    trace_stream(SIM_STREAM_DESTROY, stream);
    pthread_mutex_lock(&context->lock);
    for (CUstream *at = &context->streams; *at; at = &(*at)->next)
        if (*at == stream) {
            *at = stream->next;
            break;
        }
    pthread_mutex_unlock(&context->lock);
    capture_stream_gone(stream);
    host_op_unref(stream->last_op);
    sim_pool_put(&pool_streams, stream);
}

static CUstream stream_of_thread(CUcontext context)
{
    unsigned slot = 0;
    for (unsigned i = 0; i < THREAD_STREAMS_MAX; i++) {
        if (thread_streams[i].context == context && thread_streams[i].serial == context->serial)
            return thread_streams[i].stream;
        if (!thread_streams[i].context || !context_check(thread_streams[i].context))
            slot = i;
    }
    CUstream stream = stream_make(context, CU_STREAM_DEFAULT, 0);
    if (stream) {
        stream_link(stream);
        thread_streams[slot].context = context;
        thread_streams[slot].serial = context->serial;
        thread_streams[slot].stream = stream;
    }
    return stream;
}

CUresult stream_resolve(CUstream handle, int pt, CUstream *stream)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (SIM_UNLIKELY(result != CUDA_SUCCESS))
        return result;
    if (sim_pool_has(&pool_streams, handle)) {
        *stream = handle;
        return (CUresult)__atomic_load_n(&handle->context->sticky, __ATOMIC_RELAXED);
    }
    if (handle == CU_STREAM_LEGACY || (!handle && !pt))
        *stream = context->legacy;
    else if (handle == CU_STREAM_PER_THREAD || !handle)
        *stream = stream_of_thread(context);
    else
        return CUDA_ERROR_INVALID_HANDLE;
    return *stream ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* Sleeps for most of the time and spins for the rest: a sleep alone is 50 us late. */
void time_wait(uint64_t until_ns)
{
    if (!sim_config.timeline)
        return;
    uint64_t now_ns = sim_now_ns();
    if (until_ns > now_ns + SPIN_NS) {
        uint64_t wake_ns = until_ns - SPIN_NS;
        struct timespec wake = {(time_t)(wake_ns / 1000000000u), (long)(wake_ns % 1000000000u)};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &wake, NULL) == EINTR)
            ;
    }
    while (sim_now_ns() < until_ns)
        ;
}

static struct host_op *stream_op(CUstream stream)
{
    if (!__atomic_load_n(&stream->last_op, __ATOMIC_ACQUIRE))
        return NULL;
    pthread_mutex_lock(&stream->lock);
    struct host_op *op = host_op_ref(stream->last_op);
    pthread_mutex_unlock(&stream->lock);
    return op;
}

/* The legacy stream has everything in the blocking streams before it. */
static uint64_t stream_end(CUstream stream)
{
    uint64_t end_ns = __atomic_load_n(&stream->tail_ns, __ATOMIC_ACQUIRE);
    if (stream == stream->context->legacy) {
        uint64_t blocking_ns =
            __atomic_load_n(&stream->context->blocking_tail_ns, __ATOMIC_ACQUIRE);
        if (blocking_ns > end_ns)
            end_ns = blocking_ns;
    }
    return end_ns;
}

CUresult stream_wait(CUstream stream)
{
    struct host_op *op = stream_op(stream);
    host_op_wait(op);
    host_op_unref(op);
    time_wait(stream_end(stream));
    return (CUresult)stream->context->sticky;
}

CUresult context_wait(CUcontext context)
{
    uint64_t end_ns = stream_end(context->legacy);
    struct host_op *op = stream_op(context->legacy);
    host_op_wait(op);
    host_op_unref(op);
    do {
        op = NULL;
        pthread_mutex_lock(&context->lock);
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            uint64_t tail_ns = stream_end(stream);
            if (tail_ns > end_ns)
                end_ns = tail_ns;
            if (!op) {
                op = stream_op(stream);
                if (op && host_op_done(op)) {
                    host_op_unref(op);
                    op = NULL;
                }
            }
        }
        pthread_mutex_unlock(&context->lock);
        host_op_wait(op);
        host_op_unref(op);
    } while (op);
    time_wait(end_ns);
    return (CUresult)context->sticky;
}

static CUresult stream_create(CUstream *stream, unsigned flags, int priority)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!stream || flags > CU_STREAM_NON_BLOCKING)
        return CUDA_ERROR_INVALID_VALUE;
    CUstream made = stream_make(context, flags, priority > 0 ? 0 : priority < -5 ? -5 : priority);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream_link(made);
    *stream = made;
    return CUDA_SUCCESS;
}

static CUresult stream_destroy(CUstream stream)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sim_pool_has(&pool_streams, stream) || stream == stream->context->legacy)
        return CUDA_ERROR_INVALID_HANDLE;
    host_spend_on_memory();
    stream_discard(stream);
    return CUDA_SUCCESS;
}

static CUresult stream_synchronize(CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return result;
    uint64_t start_ns = sim_now_ns();
    result = stream_wait(stream);
    trace_sync(SIM_SYNC_STREAM, NULL, stream, NULL, start_ns);
    return result;
}

static CUresult stream_query(CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result == CUDA_SUCCESS)
        result = capture_forbids(stream);
    if (result != CUDA_SUCCESS)
        return result;
    struct host_op *op = stream_op(stream);
    bool ready = host_op_done(op) && (!sim_config.timeline || stream_end(stream) <= sim_now_ns());
    host_op_unref(op);
    return ready ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

#define WITH_STREAM(handle, expression)                                                            \
    ({                                                                                             \
        CUstream at;                                                                               \
        CUresult result = stream_resolve(handle, pt, &at);                                         \
        result == CUDA_SUCCESS ? (expression, CUDA_SUCCESS) : result;                              \
    })

DRV(cuStreamCreate, (CUstream * stream, unsigned flags), stream_create(stream, flags, 0),
    A_OUT("stream", stream), A_U(flags))
DRV(cuStreamCreateWithPriority, (CUstream * stream, unsigned flags, int priority),
    stream_create(stream, flags, priority), A_OUT("stream", stream), A_U(flags),
    {"priority", 'd', (uint64_t)(int64_t)priority, 0, 0})
DRV(cuStreamDestroy, (CUstream stream), stream_destroy(stream), A_X(stream))
DRV(cuStreamDestroy_v2, (CUstream stream), stream_destroy(stream), A_X(stream))
DRV2(cuStreamSynchronize, _ptsz, (CUstream stream), stream_synchronize(stream, pt), A_X(stream))
DRV2(cuStreamQuery, _ptsz, (CUstream stream), stream_query(stream, pt), A_X(stream))
DRV2(cuStreamGetPriority, _ptsz, (CUstream stream, int *priority),
     WITH_STREAM(stream, *priority = at->priority), A_X(stream))
DRV2(cuStreamGetFlags, _ptsz, (CUstream stream, unsigned *flags),
     WITH_STREAM(stream, *flags = at->flags), A_X(stream))
DRV2(cuStreamGetId, _ptsz, (CUstream stream, unsigned long long *id),
     WITH_STREAM(stream, *id = at->id), A_X(stream))
DRV2(cuStreamGetDevice, _ptsz, (CUstream stream, CUdevice *device),
     WITH_STREAM(stream, *device = at->context->device->ordinal), A_X(stream))
DRV2(cuStreamGetCtx, _ptsz, (CUstream stream, CUcontext *context),
     WITH_STREAM(stream, *context = at->context), A_X(stream))
DRV2(cuStreamGetCtx_v2, _ptsz, (CUstream stream, CUcontext *context, CUgreenCtx *green),
     WITH_STREAM(stream, (*context = at->context, *green = NULL)), A_X(stream))
DRV2(cuStreamAttachMemAsync, _ptsz,
     (CUstream stream, CUdeviceptr ptr, size_t bytes, unsigned flags),
     WITH_STREAM(stream, (void)at), A_X(stream), A_X(ptr), A_U(bytes))
DRV2(cuStreamCopyAttributes, _ptsz, (CUstream dst, CUstream src), WITH_STREAM(dst, (void)at))
DRV2(cuStreamGetAttribute, _ptsz, (CUstream stream, CUstreamAttrID id, CUstreamAttrValue *value),
     WITH_STREAM(stream, value->priority = at->priority), A_X(stream))
DRV2(cuStreamSetAttribute, _ptsz,
     (CUstream stream, CUstreamAttrID id, const CUstreamAttrValue *value),
     WITH_STREAM(stream, at->priority = id == CU_LAUNCH_ATTRIBUTE_PRIORITY ? value->priority
                                                                           : at->priority),
     A_X(stream))
