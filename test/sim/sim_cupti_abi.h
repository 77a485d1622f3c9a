/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUPTI_ABI_H
#define SIM_CUPTI_ABI_H

/*
 * The part of CUPTI's ABI that the simulated CUPTI and the programs that test it use, declared for
 * the tests alone: what inject/ declares must not agree with itself. The values are the same in
 * 11.8, 12.4 and 13.0 except where a comment says otherwise.
 */

#include <stddef.h>
#include <stdint.h>

typedef int CUptiResult;
typedef void *CUpti_SubscriberHandle;

enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,
    CUPTI_ERROR_INVALID_DEVICE = 2,
    CUPTI_ERROR_INVALID_CONTEXT = 3,
    CUPTI_ERROR_INVALID_OPERATION = 7,
    CUPTI_ERROR_OUT_OF_MEMORY = 8,
    CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT = 10,
    CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    CUPTI_ERROR_NOT_COMPATIBLE = 14,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_QUEUE_EMPTY = 18,
    CUPTI_ERROR_INVALID_STREAM = 20,
    CUPTI_ERROR_INVALID_KIND = 21,
    CUPTI_ERROR_NOT_SUPPORTED = 27,
    CUPTI_ERROR_LEGACY_PROFILER_NOT_SUPPORTED = 38,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
    CUPTI_ERROR_UNKNOWN = 999,
};

enum {
    CUPTI_CB_DOMAIN_DRIVER_API = 1,
    CUPTI_CB_DOMAIN_RUNTIME_API = 2,
    CUPTI_CB_DOMAIN_RESOURCE = 3,
    CUPTI_CB_DOMAIN_SYNCHRONIZE = 4,
};

enum { CUPTI_API_ENTER = 0, CUPTI_API_EXIT = 1 };

enum {
    CUPTI_ACTIVITY_KIND_MEMCPY = 1,
    CUPTI_ACTIVITY_KIND_MEMSET = 2,
    CUPTI_ACTIVITY_KIND_KERNEL = 3,
    CUPTI_ACTIVITY_KIND_DRIVER = 4,
    CUPTI_ACTIVITY_KIND_RUNTIME = 5,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_ACTIVITY_KIND_OVERHEAD = 17,
    CUPTI_ACTIVITY_KIND_MEMCPY2 = 22,
    CUPTI_ACTIVITY_KIND_CUDA_EVENT = 36,
    CUPTI_ACTIVITY_KIND_STREAM = 37,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
    CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION = 39,
    CUPTI_ACTIVITY_KIND_MEMORY2 = 49,
    CUPTI_ACTIVITY_KIND_MEMORY_POOL = 50,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE = 51,
    SIM_CUPTI_KIND_COUNT = 128,
};

enum {
    CUPTI_ACTIVITY_ATTR_DEVICE_BUFFER_SIZE = 0,
    CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER = 5,
    CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9, /* not in 11.8 */
    /* From 13.3 on: by SetAttribute_v2, most of them of one subscriber. */
    CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS = 11,
    CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE = 12,
    CUPTI_ACTIVITY_ATTR_ENABLE_HES = 13,
    CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS = 15,
    CUPTI_ACTIVITY_ATTR_ENABLE_CUDA_EVENT_DEVICE_TIMESTAMPS = 17,
    CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE = 20,
    CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE = 21,
    CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK = 22,
    CUPTI_ACTIVITY_ATTR_HES_BUFFER_SIZE = 24,
};

enum { CUPTI_ACTIVITY_FLAG_FLUSH_FORCED = 1 };

enum { SIM_CUPTI_THREAD_ID_SYSTEM = 1 };

typedef struct {
    int callbackSite;
    const char *functionName;
    const void *functionParams;
    void *functionReturnValue;
    const char *symbolName;
    void *context;
    uint32_t contextUid;
    uint64_t *correlationData;
    uint32_t correlationId;
} CUpti_CallbackData;
_Static_assert(sizeof(CUpti_CallbackData) == 72, "as in the real headers");
_Static_assert(offsetof(CUpti_CallbackData, correlationId) == 64, "as in the real headers");

typedef struct {
    void *context;
    void *stream;
    void *descriptor;
} CUpti_ResourceData;

typedef struct {
    uint32_t moduleId;
    size_t cubinSize;
    const char *pCubin;
} CUpti_ModuleResourceData;

typedef struct {
    void *context;
    void *stream;
} CUpti_SynchronizeData;

/* 13.0 has it without the last two. */
typedef struct {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName;
    size_t oldSubscriberSize;
    uint8_t allowMultipleSubscribers;
    uint8_t padding[7];
} CUpti_SubscriberParams;
enum { SIM_SUBSCRIBER_PARAMS_13_0 = 32 };
_Static_assert(sizeof(CUpti_SubscriberParams) == 40, "as in the real headers");

/* 13.3: what a subscriber's buffer callbacks are told; both may grow. */
typedef struct {
    size_t structSize;
} CUpti_BufferCallbackRequestInfo;

typedef struct {
    size_t structSize;
    uint64_t threadId;
    void **ppRecordLayouts;
    size_t numRecordLayouts;
} CUpti_BufferCallbackCompleteInfo;

typedef void (*CUpti_CallbackFunc)(void *userdata, int domain, uint32_t cbid, const void *data);
typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **buffer, size_t *size,
                                                 size_t *record_count_max);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(void *context, uint32_t stream_id,
                                                  uint8_t *buffer, size_t size, size_t valid_size);
typedef void (*CUpti_BuffersCallbackRequestFunc_v2)(uint8_t **buffer, size_t *size,
                                                    size_t *record_count_max,
                                                    CUpti_BufferCallbackRequestInfo *info);
typedef void (*CUpti_BuffersCallbackCompleteFunc_v2)(uint8_t *buffer, size_t size,
                                                     size_t valid_size,
                                                     CUpti_BufferCallbackCompleteInfo *info);
typedef uint64_t (*CUpti_TimestampCallbackFunc)(void);

/* Every function: FUNCTION(name, parameters). _v2 of Subscribe is in 13.0 and newer only. */
#define SIM_CUPTI_FUNCTIONS(FUNCTION)                                                              \
    FUNCTION(cuptiGetVersion, (uint32_t *))                                                        \
    FUNCTION(cuptiGetResultString, (CUptiResult, const char **))                                   \
    FUNCTION(cuptiGetLastError, (void))                                                            \
    FUNCTION(cuptiGetTimestamp, (uint64_t *))                                                      \
    FUNCTION(cuptiGetContextId, (void *, uint32_t *))                                              \
    FUNCTION(cuptiGetDeviceId, (void *, uint32_t *))                                               \
    FUNCTION(cuptiGetStreamIdEx, (void *, void *, uint8_t, uint32_t *))                            \
    FUNCTION(cuptiGetGraphId, (void *, uint32_t *))                                                \
    FUNCTION(cuptiGetGraphNodeId, (void *, uint64_t *))                                            \
    FUNCTION(cuptiGetGraphExecId, (void *, uint32_t *))                                            \
    FUNCTION(cuptiSetThreadIdType, (int))                                                          \
    FUNCTION(cuptiGetThreadIdType, (int *))                                                        \
    FUNCTION(cuptiSubscribe, (CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *))               \
    FUNCTION(cuptiSubscribe_v2,                                                                    \
             (CUpti_SubscriberHandle *, CUpti_CallbackFunc, void *, CUpti_SubscriberParams *))     \
    FUNCTION(cuptiUnsubscribe, (CUpti_SubscriberHandle))                                           \
    FUNCTION(cuptiEnableCallback, (uint32_t, CUpti_SubscriberHandle, int, uint32_t))               \
    FUNCTION(cuptiEnableDomain, (uint32_t, CUpti_SubscriberHandle, int))                           \
    FUNCTION(cuptiEnableAllDomains, (uint32_t, CUpti_SubscriberHandle))                            \
    FUNCTION(cuptiGetCallbackState, (uint32_t *, CUpti_SubscriberHandle, int, uint32_t))           \
    FUNCTION(cuptiGetCallbackName, (int, uint32_t, const char **))                                 \
    FUNCTION(cuptiActivityRegisterCallbacks,                                                       \
             (CUpti_BuffersCallbackRequestFunc, CUpti_BuffersCallbackCompleteFunc))                \
    FUNCTION(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc))                \
    FUNCTION(cuptiActivityEnable, (int))                                                           \
    FUNCTION(cuptiActivityDisable, (int))                                                          \
    FUNCTION(cuptiActivityEnableLatencyTimestamps, (uint8_t))                                      \
    FUNCTION(cuptiActivityPushExternalCorrelationId, (int, uint64_t))                              \
    FUNCTION(cuptiActivityPopExternalCorrelationId, (int, uint64_t *))                             \
    FUNCTION(cuptiActivityFlushAll, (uint32_t))                                                    \
    FUNCTION(cuptiActivityFlushPeriod, (uint32_t))                                                 \
    FUNCTION(cuptiActivityGetNextRecord, (uint8_t *, size_t, void **))                             \
    FUNCTION(cuptiActivityGetNumDroppedRecords, (void *, uint32_t, size_t *))                      \
    FUNCTION(cuptiActivityGetAttribute, (int, size_t *, void *))                                   \
    FUNCTION(cuptiActivitySetAttribute, (int, size_t *, void *))                                   \
    FUNCTION(cuptiFinalize, (void))

/* What 13.3 and newer have besides: activity at the scope of one subscriber. */
#define SIM_CUPTI_SCOPED_FUNCTIONS(FUNCTION)                                                       \
    FUNCTION(cuptiActivityRegisterCallbacks_v2,                                                    \
             (CUpti_SubscriberHandle, CUpti_BuffersCallbackRequestFunc_v2,                         \
              CUpti_BuffersCallbackCompleteFunc_v2))                                               \
    FUNCTION(cuptiActivityEnable_v2, (CUpti_SubscriberHandle, int, void *))                        \
    FUNCTION(cuptiActivityDisable_v2, (CUpti_SubscriberHandle, int, void *))                       \
    FUNCTION(cuptiActivityEnableDriverApi_v2, (CUpti_SubscriberHandle, uint32_t, uint8_t))         \
    FUNCTION(cuptiActivityEnableRuntimeApi_v2, (CUpti_SubscriberHandle, uint32_t, uint8_t))        \
    FUNCTION(cuptiActivityGetAttribute_v2, (CUpti_SubscriberHandle, int, size_t *, void *))        \
    FUNCTION(cuptiActivitySetAttribute_v2, (CUpti_SubscriberHandle, int, size_t *, void *))        \
    FUNCTION(cuptiActivityGetNextRecord_v2, (CUpti_SubscriberHandle, uint8_t *, size_t, void **))  \
    FUNCTION(cuptiActivityGetNumDroppedRecords_v2,                                                 \
             (CUpti_SubscriberHandle, void *, uint32_t, size_t *))                                 \
    FUNCTION(cuptiActivityPushExternalCorrelationId_v2, (CUpti_SubscriberHandle, int, uint64_t))   \
    FUNCTION(cuptiActivityPopExternalCorrelationId_v2, (CUpti_SubscriberHandle, int, uint64_t *))  \
    FUNCTION(cuptiGetTimestamp_v2, (CUpti_SubscriberHandle, uint64_t *))

#endif
