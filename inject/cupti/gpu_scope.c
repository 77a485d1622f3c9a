/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_scope.h"

#include "cupti/gpu_buffers.h"
#include "cupti/gpu_state.h"

bool gpu_scope_by_subscriber(const struct cupti_library *cupti)
{
    return cupti->cuptiSubscribe_v2 && cupti->cuptiActivityGetAttribute_v2 &&
           cupti->cuptiActivitySetAttribute_v2 && cupti->cuptiActivityRegisterCallbacks_v2 &&
           cupti->cuptiActivityEnable_v2 && cupti->cuptiActivityDisable_v2 &&
           cupti->cuptiActivityGetNextRecord_v2 && cupti->cuptiActivityGetNumDroppedRecords_v2;
}

/* Sets an attribute of the subscriber, or of the process. */
static CUptiResult gpu_scope_set(CUpti_ActivityAttribute attribute, size_t bytes, void *value)
{
    return gpu.scope ? gpu.cupti.cuptiActivitySetAttribute_v2(gpu.scope, attribute, &bytes, value)
                     : gpu.cupti.cuptiActivitySetAttribute(attribute, &bytes, value);
}

CUptiResult gpu_scope_enable(CUpti_ActivityKind kind, bool enable)
{
    if (gpu.scope)
        return enable ? gpu.cupti.cuptiActivityEnable_v2(gpu.scope, kind, NULL)
                      : gpu.cupti.cuptiActivityDisable_v2(gpu.scope, kind, NULL);
    return enable ? gpu.cupti.cuptiActivityEnable(kind) : gpu.cupti.cuptiActivityDisable(kind);
}

CUptiResult gpu_scope_thread_ids(CUpti_ActivityThreadIdType type)
{
    return gpu.scope ? gpu_scope_set(CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE, sizeof type, &type)
                     : gpu.cupti.cuptiSetThreadIdType(type);
}

CUptiResult gpu_scope_latency(uint8_t enable)
{
    return gpu.scope ? gpu_scope_set(CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS,
                                     sizeof enable, &enable)
                     : gpu.cupti.cuptiActivityEnableLatencyTimestamps(enable);
}

CUptiResult gpu_scope_clock(CUpti_TimestampCallbackFunc clock)
{
    return gpu.scope ? gpu_scope_set(CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK, sizeof clock, &clock)
                     : gpu.cupti.cuptiActivityRegisterTimestampCallback(clock);
}

void gpu_scope_buffer_attributes(void)
{
    uint8_t on = 1, off = 0;
    /* It is not documented whether these are per subscriber: others' buffers may not be zeroed. */
    if (gpu.shared)
        return;
    gpu_scope_set(CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER, sizeof on, &on);
    /* With a buffer per thread, memory would grow with the number of threads. */
    gpu_scope_set(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER, sizeof off, &off);
}

static void requested(uint8_t **buffer, size_t *size, size_t *record_count_max,
                      CUpti_BufferCallbackRequestInfo *info)
{
    (void)info;
    gpu_buffers_requested(buffer, size, record_count_max);
}

static void completed(uint8_t *buffer, size_t size, size_t valid_bytes,
                      CUpti_BufferCallbackCompleteInfo *info)
{
    (void)info;
    gpu_buffers_completed(NULL, 0, buffer, size, valid_bytes);
}

CUptiResult gpu_scope_register(CUpti_BuffersCallbackRequestFunc process_requested,
                               CUpti_BuffersCallbackCompleteFunc process_completed)
{
    return gpu.scope
               ? gpu.cupti.cuptiActivityRegisterCallbacks_v2(gpu.scope, requested, completed)
               : gpu.cupti.cuptiActivityRegisterCallbacks(process_requested, process_completed);
}

bool gpu_scope_graphs_are_whole(void)
{
    uint8_t whole = 0;
    size_t bytes = sizeof whole;
    return gpu.shared &&
           gpu.cupti.cuptiActivityGetAttribute_v2(
               gpu.scope, CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE, &bytes,
               &whole) == CUPTI_SUCCESS &&
           whole;
}

bool gpu_scope_measure(void)
{
    return cupti_library_measure(&gpu.cupti, gpu_scope_next_record);
}

CUptiResult gpu_scope_next_record(uint8_t *buffer, size_t valid_bytes, CUpti_Activity **record)
{
    return gpu.scope
               ? gpu.cupti.cuptiActivityGetNextRecord_v2(gpu.scope, buffer, valid_bytes, record)
               : gpu.cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, record);
}

CUptiResult gpu_scope_dropped(CUcontext context, uint32_t stream, size_t *dropped)
{
    return gpu.scope
               ? gpu.cupti.cuptiActivityGetNumDroppedRecords_v2(gpu.scope, context, stream, dropped)
               : gpu.cupti.cuptiActivityGetNumDroppedRecords(context, stream, dropped);
}
