/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the records of the device and of NVTX hold, by name: where each argument stands (events.def
 * has the same order), and CUPTI's and NVTX's numbers in words, as Kineto writes them.
 */
#ifndef GPUPROF_COLLECTOR_GPU_RECORD_H
#define GPUPROF_COLLECTOR_GPU_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

#define GPU_THREAD_NAME "gpuprof-gpu" /* of the thread whose blocks hold these records */

enum kernel_arg {
    KERNEL_DEVICE,
    KERNEL_CONTEXT,
    KERNEL_STREAM,
    KERNEL_NAME_INDEX,
    KERNEL_GRID,
    KERNEL_BLOCK,
    KERNEL_REGISTERS,
    KERNEL_STATIC_SHARED,
    KERNEL_DYNAMIC_SHARED,
    KERNEL_LOCAL,
    KERNEL_QUEUED,
    KERNEL_SUBMITTED,
    KERNEL_GRAPH,
    KERNEL_GRAPH_NODE,
    KERNEL_CLUSTER,
    KERNEL_CHANNEL,
};

enum copy_arg {
    COPY_DEVICE,
    COPY_CONTEXT,
    COPY_STREAM,
    COPY_KIND,
    COPY_SOURCE,
    COPY_DESTINATION,
    COPY_BYTES,
    COPY_FLAGS,
    COPY_GRAPH,
    COPY_GRAPH_NODE,
    COPY_CHANNEL,
    COPY_SOURCE_DEVICE, /* this and what follows: one more than the number, 0 = no peers */
    COPY_SOURCE_CONTEXT,
    COPY_DESTINATION_DEVICE,
    COPY_DESTINATION_CONTEXT,
};

enum set_arg {
    SET_DEVICE,
    SET_CONTEXT,
    SET_STREAM,
    SET_VALUE,
    SET_BYTES,
    SET_KIND,
    SET_FLAGS,
    SET_GRAPH,
    SET_GRAPH_NODE,
    SET_CHANNEL,
};

enum sync_arg { SYNC_KIND, SYNC_CONTEXT, SYNC_STREAM, SYNC_EVENT };
enum graph_arg { GRAPH_DEVICE, GRAPH_CONTEXT, GRAPH_STREAM, GRAPH_GRAPH };
enum overhead_arg { OVERHEAD_KIND, OVERHEAD_OBJECT, OVERHEAD_PROCESS, OVERHEAD_THREAD };

enum memory_arg {
    MEMORY_OPERATION,
    MEMORY_KIND,
    MEMORY_ADDRESS,
    MEMORY_BYTES,
    MEMORY_DEVICE,
    MEMORY_CONTEXT,
    MEMORY_STREAM,
    MEMORY_PC,
    MEMORY_ASYNC,
    MEMORY_POOL,
    MEMORY_POOL_BYTES, /* one more than the number, 0 = in no pool, or not known */
};

enum pool_arg {
    POOL_OPERATION,
    POOL_KIND,
    POOL_POOL,
    POOL_DEVICE,
    POOL_KEPT,
    POOL_BYTES,
    POOL_USED,
};

enum device_arg {
    DEVICE_DEVICE,
    DEVICE_MAJOR,
    DEVICE_MINOR,
    DEVICE_MULTIPROCESSORS,
    DEVICE_THREADS_MAX,
    DEVICE_BLOCKS_MAX,
    DEVICE_REGISTERS_MAX,
    DEVICE_SHARED_MAX,
    DEVICE_SHARED_BLOCK_MAX,
    DEVICE_MEMORY,
    DEVICE_BANDWIDTH,
    DEVICE_CLOCK,
    DEVICE_UUID_HIGH,
    DEVICE_UUID_LOW,
    DEVICE_L2,
    DEVICE_WARP,
};

enum context_arg { CONTEXT_CONTEXT, CONTEXT_DEVICE, CONTEXT_NULL_STREAM };

/* Of PUSH and MARK; RANGE_START has the range's number before them. */
enum push_arg {
    PUSH_DOMAIN,
    PUSH_CATEGORY,
    PUSH_COLOR,
    PUSH_PAYLOAD_TYPE,
    PUSH_PAYLOAD,
    PUSH_MESSAGE,
};

enum label_arg { LABEL_KIND, LABEL_HANDLE, LABEL_DOMAIN };
enum label_kind { LABEL_OF_DOMAIN = 1, LABEL_OF_STRING, LABEL_OF_CATEGORY, LABEL_OF_THREAD };

enum sync_kind { SYNC_EVENT_HOST = 1, SYNC_STREAM_WAIT, SYNC_STREAM_HOST, SYNC_CONTEXT_HOST };
enum memory_operation { MEMORY_ALLOCATE = 1, MEMORY_RELEASE = 2 };
enum pool_operation { POOL_CREATED = 1, POOL_DESTROYED = 2, POOL_TRIMMED = 3 };
enum pool_kind { POOL_LOCAL = 1 }; /* others are of another process */

#define GPU_STREAM_NONE    0xffffffffu /* CUPTI's word for "no stream": a whole context */
#define GPU_STREAM_DEFAULT 7           /* how consumers know the default stream */

/* An argument that the record does not have is 0. */
static inline uint64_t record_arg(const struct record *r, unsigned index)
{
    return index < r->arg_count ? r->args[index] : 0;
}

/* Work that runs on a stream: KERNEL, COPY, SET or GRAPH. Their first three arguments are alike. */
static inline bool is_stream_work(unsigned type)
{
    return type == RECORD_KERNEL || type == RECORD_COPY || type == RECORD_SET ||
           type == RECORD_GRAPH;
}

/* What ranges, marks and their names are made of. */
static inline bool is_range_record(unsigned type)
{
    return type >= RECORD_PUSH && type <= RECORD_LABEL;
}

/* Does the record show in a trace? The others only describe. */
static inline bool event_is_visible(unsigned type)
{
    return type == RECORD_CALL || is_stream_work(type) || type == RECORD_SYNC ||
           type == RECORD_OVERHEAD || type == RECORD_MEMORY ||
           (type >= RECORD_PUSH && type <= RECORD_PAUSE);
}

/* As Kineto has them; never NULL. */
const char *copy_kind_text(uint64_t kind);     /* "HtoD" */
const char *memory_kind_text(uint64_t kind);   /* "Pageable" */
const char *sync_kind_text(uint64_t kind);     /* "Stream Sync" */
const char *overhead_kind_text(uint64_t kind); /* "Lazy Function Loading" */
const char *memory_operation_text(uint64_t operation);
const char *pool_operation_text(uint64_t operation);
const char *object_kind_text(uint64_t kind);
const char *payload_type_text(uint64_t type);
const char *label_kind_text(uint64_t kind);

/* Is this memory the device's (as against host memory)? */
bool memory_is_device(uint64_t kind);

/* "Memcpy HtoD (Pageable -> Device)", "Memset (Device)"; returns `text`. */
#define GPU_TITLE_BYTES 96
char *copy_title(uint64_t kind, uint64_t source, uint64_t destination, char *text);
char *set_title(uint64_t kind, char *text);

/* The threads of a dim3 (x | y << 32 | z << 48), cut at 2^62. */
uint64_t dim3_volume(uint64_t dim3);

#endif
