/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>
#include <unistd.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

enum { EVENT_COUNT_MAX = 1 << 18 };

struct sim_pool pool_events = SIM_POOL(struct CUevent_st, EVENT_COUNT_MAX);

static CUresult event_create(CUevent *event, unsigned flags)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!event || flags > 7 ||
        ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    CUevent made = sim_pool_get(&pool_events);
    if (!made)
        return CUDA_ERROR_OUT_OF_MEMORY;
    made->context = context;
    made->flags = flags;
    made->id = driver_serial();
    pthread_mutex_init(&made->lock, NULL);
    *event = made;
    return CUDA_SUCCESS;
}

static CUresult event_destroy(CUevent event)
{
    if (!sim_pool_has(&pool_events, event))
        return CUDA_ERROR_INVALID_HANDLE;
    host_op_unref(event->op);
    sim_pool_put(&pool_events, event);
    return CUDA_SUCCESS;
}

static CUresult event_record(CUevent event, CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sim_pool_has(&pool_events, event) || event->context != stream->context)
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_event_record(event, stream, &result))
        return result;
    pthread_mutex_lock(&stream->lock);
    struct host_op *op = host_op_ref(stream->last_op);
    uint64_t time_ns = stream_start(stream, sim_now_ns());
    pthread_mutex_unlock(&stream->lock);
    pthread_mutex_lock(&event->lock);
    struct host_op *old = event->op;
    event->op = op;
    event->time_ns = time_ns;
    event->recorded = true;
    event->record_count++;
    event->capture = NULL;
    pthread_mutex_unlock(&event->lock);
    host_op_unref(old);
    trace_sync(SIM_SYNC_EVENT_RECORD, NULL, stream, event, time_ns);
    return CUDA_SUCCESS;
}

static CUresult event_state(CUevent event, bool wait)
{
    if (!sim_pool_has(&pool_events, event))
        return CUDA_ERROR_INVALID_HANDLE;
    pthread_mutex_lock(&event->lock);
    bool captured = event->capture != NULL;
    struct host_op *op = host_op_ref(event->op);
    uint64_t time_ns = event->recorded ? event->time_ns : 0;
    pthread_mutex_unlock(&event->lock);
    CUresult result = captured ? CUDA_ERROR_CAPTURED_EVENT : (CUresult)event->context->sticky;
    if (result == CUDA_SUCCESS && wait) {
        uint64_t start_ns = sim_now_ns();
        host_op_wait(op);
        time_wait(time_ns);
        trace_sync(SIM_SYNC_EVENT, event->context, NULL, event, start_ns);
    } else if (result == CUDA_SUCCESS &&
               (!host_op_done(op) || (sim_config.timeline && time_ns > sim_now_ns()))) {
        result = CUDA_ERROR_NOT_READY;
    }
    host_op_unref(op);
    return result;
}

static CUresult event_elapsed(float *ms, CUevent start, CUevent end)
{
    if (!ms)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_pool_has(&pool_events, start) || !sim_pool_has(&pool_events, end) ||
        !start->recorded || !end->recorded ||
        ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult result = event_state(start, false);
    if (result == CUDA_SUCCESS)
        result = event_state(end, false);
    if (result == CUDA_SUCCESS)
        *ms = (float)((double)(int64_t)(end->time_ns - start->time_ns) / 1e6);
    return result;
}

static CUresult stream_wait_event(CUstream handle, CUevent event, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!sim_pool_has(&pool_events, event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (capture_event_wait(stream, event, &result))
        return result;
    pthread_mutex_lock(&event->lock);
    struct host_op *op = host_op_ref(event->op);
    uint64_t time_ns = event->recorded ? event->time_ns : 0;
    pthread_mutex_unlock(&event->lock);
    stream_advance(stream, time_ns);
    host_op_join(stream, op);
    host_op_unref(op);
    trace_sync(SIM_SYNC_STREAM_WAIT_EVENT, NULL, stream, event, sim_now_ns());
    return CUDA_SUCCESS;
}

CUresult context_event(CUcontext context, CUevent event, bool record)
{
    if (!context_check(context))
        return CUDA_ERROR_INVALID_CONTEXT;
    if (!sim_pool_has(&pool_events, event))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!record)
        return stream_wait_event(context->legacy, event, 0);
    return event_record(event, context->legacy, 0);
}

/* An event of another process is one that is complete: its timeline is not shared. */
static CUresult event_ipc_get(CUipcEventHandle *handle, CUevent event)
{
    if (!sim_pool_has(&pool_events, event) || !(event->flags & CU_EVENT_INTERPROCESS))
        return CUDA_ERROR_INVALID_HANDLE;
    memset(handle, 0, sizeof *handle);
    int pid = (int)getpid();
    memcpy(handle->reserved, &pid, sizeof pid);
    return CUDA_SUCCESS;
}

static CUresult event_ipc_open(CUevent *event)
{
    return event_create(event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING);
}

DRV(cuEventCreate, (CUevent * event, unsigned flags), event_create(event, flags),
    A_OUT("event", event), A_U(flags))
DRV(cuEventDestroy, (CUevent event), event_destroy(event), A_X(event))
DRV(cuEventDestroy_v2, (CUevent event), event_destroy(event), A_X(event))
DRV2(cuEventRecord, _ptsz, (CUevent event, CUstream stream), event_record(event, stream, pt),
     A_X(event), A_X(stream))
DRV2(cuEventRecordWithFlags, _ptsz, (CUevent event, CUstream stream, unsigned flags),
     event_record(event, stream, pt), A_X(event), A_X(stream), A_U(flags))
DRV(cuEventQuery, (CUevent event), event_state(event, false), A_X(event))
DRV(cuEventSynchronize, (CUevent event), event_state(event, true), A_X(event))
DRV(cuEventElapsedTime, (float *ms, CUevent start, CUevent end), event_elapsed(ms, start, end),
    A_X(start), A_X(end))
DRV(cuEventElapsedTime_v2, (float *ms, CUevent start, CUevent end), event_elapsed(ms, start, end),
    A_X(start), A_X(end))
DRV2(cuStreamWaitEvent, _ptsz, (CUstream stream, CUevent event, unsigned flags),
     stream_wait_event(stream, event, pt), A_X(stream), A_X(event))
DRV(cuCtxRecordEvent, (CUcontext ctx, CUevent event), context_event(ctx, event, true), A_X(ctx),
    A_X(event))
DRV(cuCtxWaitEvent, (CUcontext ctx, CUevent event), context_event(ctx, event, false), A_X(ctx),
    A_X(event))
DRV(cuIpcGetEventHandle, (CUipcEventHandle * handle, CUevent event), event_ipc_get(handle, event),
    A_X(event))
DRV(cuIpcOpenEventHandle, (CUevent * event, CUipcEventHandle handle), event_ipc_open(event),
    A_OUT("event", event))
