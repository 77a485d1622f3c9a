/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of CUPTI's ABI that gpuprof uses, under CUPTI's own names: nothing here differs between
 * 11.8 and 13.x. Activity records are not here, because libcupti writes its own newest structures:
 * see cupti_fields.def. Functions are in cupti_functions.def. test/abi compares every size, offset,
 * constant and prototype with the real headers. Never include it together with them.
 *
 * Fields named `opaque...` stand for parts that are not read.
 */
#ifndef GPUPROF_INJECT_CUPTI_ABI_H
#define GPUPROF_INJECT_CUPTI_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"

/* Result codes that we distinguish. Without a driver libcupti up to 12.x returns 15, later ones
 * 999. */

typedef enum {
    CUPTI_SUCCESS = 0,
    CUPTI_ERROR_INVALID_PARAMETER = 1,
    CUPTI_ERROR_INVALID_OPERATION = 7,
    CUPTI_ERROR_MAX_LIMIT_REACHED = 12,
    CUPTI_ERROR_NOT_COMPATIBLE = 14,
    CUPTI_ERROR_NOT_INITIALIZED = 15,
    CUPTI_ERROR_INVALID_KIND = 21,
    CUPTI_ERROR_NOT_SUPPORTED = 27,
    CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED = 33,
    CUPTI_ERROR_INSUFFICIENT_PRIVILEGES = 35,
    CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED = 39,
    CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED = 41,
    CUPTI_ERROR_UNKNOWN = 999
} CUptiResult;

/* Callbacks. */

typedef enum {
    CUPTI_CB_DOMAIN_DRIVER_API = 1,
    CUPTI_CB_DOMAIN_RUNTIME_API = 2,
    CUPTI_CB_DOMAIN_RESOURCE = 3,
    CUPTI_CB_DOMAIN_SYNCHRONIZE = 4,
    CUPTI_CB_DOMAIN_STATE = 6
} CUpti_CallbackDomain;

typedef enum { CUPTI_API_ENTER = 0, CUPTI_API_EXIT = 1 } CUpti_ApiCallbackSite;

typedef enum {
    CUPTI_CBID_RESOURCE_CONTEXT_CREATED = 1,
    CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING = 2,
    CUPTI_CBID_RESOURCE_STREAM_CREATED = 3,
    CUPTI_CBID_RESOURCE_STREAM_DESTROY_STARTING = 4,
    CUPTI_CBID_RESOURCE_CU_INIT_FINISHED = 5,
    CUPTI_CBID_RESOURCE_MODULE_LOADED = 6,
    CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING = 7
} CUpti_CallbackIdResource;

typedef enum {
    CUPTI_CBID_STATE_FATAL_ERROR = 1,
    CUPTI_CBID_STATE_ERROR = 2,
    CUPTI_CBID_STATE_WARNING = 3
} CUpti_CallbackIdState;

typedef uint32_t CUpti_CallbackId;
typedef struct CUpti_Subscriber_st *CUpti_SubscriberHandle;

typedef struct {
    CUpti_ApiCallbackSite callbackSite;
    const char *functionName;
    const void *functionParams; /* see cupti_params.h */
    void *functionReturnValue;  /* cudaError_t or CUresult; only at EXIT */
    const char *symbolName;     /* for launches: the kernel's name */
    CUcontext context;
    uint32_t contextUid;
    uint64_t *correlationData; /* a word of ours, kept from ENTER to EXIT */
    uint32_t correlationId;
} CUpti_CallbackData;

typedef void (*CUpti_CallbackFunc)(void *userdata, CUpti_CallbackDomain domain,
                                   CUpti_CallbackId cbid, const void *cbdata);

/* The layout of 13.2 and newer. Its first field is its size, and later versions append fields. */
typedef struct {
    size_t structSize;
    const char *subscriberName;
    char *oldSubscriberName;
    size_t oldSubscriberSize;
    uint8_t allowMultipleSubscribers; /* missing in 13.0, whose structure ends here */
    uint8_t padding[7];
} CUpti_SubscriberParams;

#define CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN 64

/* Activities. */

typedef enum {
    CUPTI_ACTIVITY_KIND_INVALID = 0,
    CUPTI_ACTIVITY_KIND_MEMCPY = 1,
    CUPTI_ACTIVITY_KIND_MEMSET = 2,
    CUPTI_ACTIVITY_KIND_KERNEL = 3, /* never enabled, since it serializes kernels */
    CUPTI_ACTIVITY_KIND_DRIVER = 4,
    CUPTI_ACTIVITY_KIND_RUNTIME = 5,
    CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL = 10,
    CUPTI_ACTIVITY_KIND_OVERHEAD = 17,
    CUPTI_ACTIVITY_KIND_MEMCPY2 = 22, /* between peer devices */
    CUPTI_ACTIVITY_KIND_CUDA_EVENT = 36,
    CUPTI_ACTIVITY_KIND_STREAM = 37,
    CUPTI_ACTIVITY_KIND_SYNCHRONIZATION = 38,
    CUPTI_ACTIVITY_KIND_INTERNAL_LAUNCH_API = 48,
    CUPTI_ACTIVITY_KIND_MEMORY2 = 49,
    CUPTI_ACTIVITY_KIND_MEMORY_POOL = 50,
    CUPTI_ACTIVITY_KIND_GRAPH_TRACE = 51,
    CUPTI_ACTIVITY_KIND_JIT = 52
} CUpti_ActivityKind;

/* Kinds from here on are unknown to gpuprof; 13.5 knows 59. */
#define CUPTI_KIND_MAX 64

/* The first field of every record; records are packed to 8 bytes. */
typedef struct __attribute__((packed, aligned(8))) {
    CUpti_ActivityKind kind;
} CUpti_Activity;

typedef enum {
    CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER = 5,
    CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER = 9,
    CUPTI_ACTIVITY_ATTR_USER_DEFINED_RECORDS = 11,
    CUPTI_ACTIVITY_ATTR_MULTIPLE_SUBSCRIBER_STATE = 12,
    CUPTI_ACTIVITY_ATTR_ENABLE_KERNEL_LATENCY_TIMESTAMPS = 15,
    CUPTI_ACTIVITY_ATTR_ENABLE_MULTI_SUBSCRIBER_GRAPH_TRACE = 20,
    CUPTI_ACTIVITY_ATTR_THREAD_ID_TYPE = 21,
    CUPTI_ACTIVITY_ATTR_TIMESTAMP_CALLBACK = 22
} CUpti_ActivityAttribute;

/* Which fields of a kind to record; we pass NULL for all. */
typedef struct {
    size_t structSize;
    uint64_t opaque_rest[4];
} CUpti_ActivityConfig;

typedef enum {
    CUPTI_ACTIVITY_THREAD_ID_TYPE_DEFAULT = 0,
    CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM = 1
} CUpti_ActivityThreadIdType;

typedef enum {
    CUPTI_ACTIVITY_MEMCPY_KIND_UNKNOWN = 0,
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOD = 1,
    CUPTI_ACTIVITY_MEMCPY_KIND_DTOH = 2,
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOA = 3,
    CUPTI_ACTIVITY_MEMCPY_KIND_ATOH = 4,
    CUPTI_ACTIVITY_MEMCPY_KIND_ATOA = 5,
    CUPTI_ACTIVITY_MEMCPY_KIND_ATOD = 6,
    CUPTI_ACTIVITY_MEMCPY_KIND_DTOA = 7,
    CUPTI_ACTIVITY_MEMCPY_KIND_DTOD = 8,
    CUPTI_ACTIVITY_MEMCPY_KIND_HTOH = 9,
    CUPTI_ACTIVITY_MEMCPY_KIND_PTOP = 10
} CUpti_ActivityMemcpyKind;

typedef enum {
    CUPTI_ACTIVITY_MEMORY_KIND_UNKNOWN = 0,
    CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE = 1,
    CUPTI_ACTIVITY_MEMORY_KIND_PINNED = 2,
    CUPTI_ACTIVITY_MEMORY_KIND_DEVICE = 3,
    CUPTI_ACTIVITY_MEMORY_KIND_ARRAY = 4,
    CUPTI_ACTIVITY_MEMORY_KIND_MANAGED = 5,
    CUPTI_ACTIVITY_MEMORY_KIND_DEVICE_STATIC = 6,
    CUPTI_ACTIVITY_MEMORY_KIND_MANAGED_STATIC = 7
} CUpti_ActivityMemoryKind;

typedef enum {
    CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN = 0,
    CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE = 1,
    CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT = 2,
    CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE = 3,
    CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE = 4
} CUpti_ActivitySynchronizationType;

typedef enum {
    CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER = 1,
    CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH = 0x10000,
    CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION = 0x20000,
    CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE = 0x30000,
    CUPTI_ACTIVITY_OVERHEAD_RUNTIME_TRIGGERED_MODULE_LOADING = 0x40000,
    CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING = 0x50000,
    CUPTI_ACTIVITY_OVERHEAD_COMMAND_BUFFER_FULL = 0x60000,
    CUPTI_ACTIVITY_OVERHEAD_ACTIVITY_BUFFER_REQUEST = 0x70000
} CUpti_ActivityOverheadKind;

typedef enum {
    CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_ALLOCATION = 1,
    CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE = 2
} CUpti_ActivityMemoryOperationType;

typedef enum {
    CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL = 1,
    CUPTI_ACTIVITY_MEMORY_POOL_TYPE_IMPORTED = 2
} CUpti_ActivityMemoryPoolType;

#define CUPTI_ACTIVITY_FLAG_FLUSH_FORCED 1

/* Used by other clients only. */
typedef enum { CUPTI_EXTERNAL_CORRELATION_KIND_UNKNOWN = 1 } CUpti_ExternalCorrelationKind;

/* The functions that CUPTI calls for buffers and timestamps. */

typedef void (*CUpti_BuffersCallbackRequestFunc)(uint8_t **buffer, size_t *size,
                                                 size_t *maxNumRecords);
typedef void (*CUpti_BuffersCallbackCompleteFunc)(CUcontext context, uint32_t streamId,
                                                  uint8_t *buffer, size_t size, size_t validSize);
typedef uint64_t (*CUpti_TimestampCallbackFunc)(void);

/* The same for one subscriber, since 13.3. The first field of both structures is their size. */

typedef struct {
    size_t structSize;
} CUpti_BufferCallbackRequestInfo;

typedef struct {
    size_t structSize;
    uint64_t threadId;
    void **ppRecordLayouts; /* for records with selected fields */
    size_t numRecordLayouts;
} CUpti_BufferCallbackCompleteInfo;

typedef void (*CUpti_BuffersCallbackRequestFunc_v2)(
    uint8_t **buffer, size_t *size, size_t *maxNumRecords,
    CUpti_BufferCallbackRequestInfo *pBufferRequestInfo);
typedef void (*CUpti_BuffersCallbackCompleteFunc_v2)(
    uint8_t *buffer, size_t size, size_t validSize,
    CUpti_BufferCallbackCompleteInfo *pBufferCompleteInfo);

#endif
