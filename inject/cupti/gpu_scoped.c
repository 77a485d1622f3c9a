/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The activity functions of a subscriber (13.3 and newer), called by another client. A client that
 * has the subscription to itself, or shares it with others through CUPTI, gets CUPTI's functions. A
 * client that our subscription serves can only have the process's records, so its calls are passed
 * to the process's functions.
 */
#include "base/say.h"
#include "cupti/gpu_other_client.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_subscriber.h"
#include "hook/hook_real.h"

/* Prototypes of the exported functions; none of our headers declares CUPTI's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api_cupti.def"
#undef HOOK

/* A function that the process's libcupti lacks is missing for the guest, too. */
#define OF_PROCESS(function, ...)                                                                  \
    (gpu.cupti.function ? (int)gpu.cupti.function(__VA_ARGS__) : (int)CUPTI_ERROR_NOT_SUPPORTED)

/* Defines the row's function, with its own code for served clients. */
#define SCOPED(id, params, arguments, served)                                                      \
    EXPORT int id params                                                                           \
    {                                                                                              \
        if (gpu_subscriber_is_served(subscriber))                                                  \
            return served;                                                                         \
        __typeof__(&id) real = HOOK_REAL(id);                                                      \
        return real ? real arguments : (int)CUPTI_ERROR_NOT_INITIALIZED;                           \
    }

static int served_register(void *requested, void *completed)
{
    if (!requested || !completed)
        return CUPTI_ERROR_INVALID_PARAMETER;
    return gpu_other_client_register_v2((CUpti_BuffersCallbackRequestFunc_v2)requested,
                                        (CUpti_BuffersCallbackCompleteFunc_v2)completed);
}

static int served_dump(int kind)
{
    gpu_other_client_acts();
    return OF_PROCESS(cuptiActivityEnableAndDump, (CUpti_ActivityKind)kind);
}

static int served_driver(uint32_t cbid, uint8_t enable)
{
    gpu_other_client_acts();
    return OF_PROCESS(cuptiActivityEnableDriverApi, cbid, enable);
}

static int served_runtime(uint32_t cbid, uint8_t enable)
{
    gpu_other_client_acts();
    return OF_PROCESS(cuptiActivityEnableRuntimeApi, cbid, enable);
}

/* The process's function also takes the attributes for subscribers, as far as possible. */
static int served_set(int attribute, size_t *bytes, void *value)
{
    bool is_layout =
        attribute == CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS && value && *(const uint8_t *)value;
    if (!is_layout)
        return gpu_other_client_set(
            (gpu_other_client_attribute_fn *)gpu.cupti.cuptiActivitySetAttribute, attribute, bytes,
            value);
    note(SAY_CLIENT, "another CUPTI client asked for a record layout of its own; CUPTI allows that "
                     "only if it subscribes before gpuprof and lets others subscribe");
    return CUPTI_ERROR_NOT_SUPPORTED;
}

/* The client has asked whether others may subscribe, or was told that they may. */
static int served_get(int attribute, size_t *bytes, void *value)
{
    if (attribute != CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE)
        return OF_PROCESS(cuptiActivityGetAttribute, (CUpti_ActivityAttribute)attribute, bytes,
                          value);
    if (!bytes || !value)
        return CUPTI_ERROR_INVALID_PARAMETER;
    *(uint8_t *)value = gpu_subscriber_would_share();
    *bytes = sizeof(uint8_t);
    return CUPTI_SUCCESS;
}

SCOPED(cuptiActivityRegisterCallbacks_v2,
       (void *subscriber, void *funcBufferRequested, void *funcBufferCompleted),
       (subscriber, funcBufferRequested, funcBufferCompleted),
       served_register(funcBufferRequested, funcBufferCompleted))
SCOPED(cuptiActivityEnable_v2, (void *subscriber, int kind, void *pActivityConfig),
       (subscriber, kind, pActivityConfig),
       gpu_other_client_enable((gpu_other_client_kind_fn *)gpu.cupti.cuptiActivityEnable, kind))
SCOPED(cuptiActivityDisable_v2, (void *subscriber, int kind, void *pActivityConfig),
       (subscriber, kind, pActivityConfig),
       gpu_other_client_disable((gpu_other_client_kind_fn *)gpu.cupti.cuptiActivityDisable, kind))
SCOPED(cuptiActivityEnableAndDump_v2, (void *subscriber, int kind, void *pActivityConfig),
       (subscriber, kind, pActivityConfig), served_dump(kind))
SCOPED(cuptiActivityEnableDriverApi_v2, (void *subscriber, uint32_t cbid, uint8_t enable),
       (subscriber, cbid, enable), served_driver(cbid, enable))
SCOPED(cuptiActivityEnableRuntimeApi_v2, (void *subscriber, uint32_t cbid, uint8_t enable),
       (subscriber, cbid, enable), served_runtime(cbid, enable))
SCOPED(cuptiActivityGetAttribute_v2, (void *subscriber, int attr, size_t *valueSize, void *value),
       (subscriber, attr, valueSize, value), served_get(attr, valueSize, value))
SCOPED(cuptiActivitySetAttribute_v2, (void *subscriber, int attr, size_t *valueSize, void *value),
       (subscriber, attr, valueSize, value), served_set(attr, valueSize, value))
SCOPED(cuptiActivityGetNextRecord_v2,
       (void *subscriber, void *buffer, size_t validBufferSizeBytes, void *record),
       (subscriber, buffer, validBufferSizeBytes, record),
       OF_PROCESS(cuptiActivityGetNextRecord, buffer, validBufferSizeBytes, record))
SCOPED(cuptiActivityGetNumDroppedRecords_v2,
       (void *subscriber, void *context, uint32_t streamId, size_t *dropped),
       (subscriber, context, streamId, dropped),
       OF_PROCESS(cuptiActivityGetNumDroppedRecords, context, streamId, dropped))
SCOPED(cuptiActivityPushExternalCorrelationId_v2, (void *subscriber, int kind, uint64_t id),
       (subscriber, kind, id),
       OF_PROCESS(cuptiActivityPushExternalCorrelationId, (CUpti_ExternalCorrelationKind)kind, id))
SCOPED(cuptiActivityPopExternalCorrelationId_v2, (void *subscriber, int kind, uint64_t *lastId),
       (subscriber, kind, lastId),
       OF_PROCESS(cuptiActivityPopExternalCorrelationId, (CUpti_ExternalCorrelationKind)kind,
                  lastId))
SCOPED(cuptiGetTimestamp_v2, (void *subscriber, uint64_t *timestamp), (subscriber, timestamp),
       OF_PROCESS(cuptiGetTimestamp, timestamp))

EXPORT int cuptiUnsubscribe(void *subscriber)
{
    if (gpu_subscriber_is_served(subscriber)) /* everything that it enabled as a subscriber ends */
        gpu_other_client_leaves();
    return gpu_subscriber_unsubscribe(subscriber);
}
