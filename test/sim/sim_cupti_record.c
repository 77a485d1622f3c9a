/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_cupti.h"
#include "sim_nvml.h"

/* What happened, as activity records. A field that this version's record does not reach is left. */

enum record_type {
    TYPE_KERNEL,
    TYPE_MEMCPY,
    TYPE_MEMCPY2,
    TYPE_MEMSET,
    TYPE_SYNC,
    TYPE_EVENT,
    TYPE_GRAPH,
    TYPE_OVERHEAD,
    TYPE_MEMORY,
    TYPE_POOL,
    TYPE_STREAM,
    TYPE_API,
    TYPE_EXTERNAL,
};

enum field {
#define FIELD(type, member, offset, width) FIELD_##type##_##member,
#include "sim_cupti_fields.def"
#undef FIELD
    FIELD_COUNT
};

static const struct field_row {
    uint8_t type;
    uint16_t offset, width;
    const char *member;
} fields[] = {
#define FIELD(type, member, offset, width) {TYPE_##type, offset, width, #member},
#include "sim_cupti_fields.def"
#undef FIELD
};

enum {
    COPY_PTOP = 10,
    FLAG_ASYNC = 1,
    CHANNEL_COMPUTE = 1,
    CHANNEL_COPY = 2,
    OVERHEAD_COMPILER = 1,
    OVERHEAD_LAZY_LOADING = 5 << 16,
    OVERHEAD_COMMAND_BUFFER = 6 << 16,
    OBJECT_THREAD = 2,
    INVALID_ID = -1,
    LOADED_COUNT_MAX = 1 << 16,
    OVERHEAD_DATA_BYTES = 12,
};

static uint64_t serial, grid_id, launch_count;
static const void *loaded[LOADED_COUNT_MAX]; /* functions that were launched before */
static unsigned loaded_count;

static uint32_t correlation(void)
{
    return cupti_thread.call ? cupti_thread.call->correlation : 0;
}

static void put(struct cupti_record *record, enum field field, uint64_t value)
{
    const struct field_row *row = &fields[field];
    if (row->offset + row->width <= record->bytes)
        memcpy(record->payload + row->offset, &value, row->width);
}

static void start_wanted(struct cupti_record *record, uint32_t kind)
{
    memset(record, 0, sizeof *record);
    record->kind = record->asked = (uint16_t)kind;
    record->bytes = (uint16_t)cupti_record_bytes(kind);
    memcpy(record->payload, &kind, sizeof kind);
}

static bool start(struct cupti_record *record, uint32_t kind)
{
    if (!activity_wanted_by_any(kind))
        return false;
    start_wanted(record, kind);
    return true;
}

#define PUT(type, member, value) put(&record, FIELD_##type##_##member, (uint64_t)(value))
#define TIMES(type, begin, finish)                                                                 \
    (record.start_at = fields[FIELD_##type##_start].offset,                                        \
     record.end_at = fields[FIELD_##type##_end].offset, record.start_ns = (begin),                 \
     record.end_ns = (finish))

static enum record_type type_of(uint32_t kind)
{
    switch (kind) {
    case CUPTI_ACTIVITY_KIND_MEMCPY: return TYPE_MEMCPY;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: return TYPE_MEMCPY2;
    case CUPTI_ACTIVITY_KIND_MEMSET: return TYPE_MEMSET;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: return TYPE_SYNC;
    case CUPTI_ACTIVITY_KIND_CUDA_EVENT: return TYPE_EVENT;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: return TYPE_GRAPH;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: return TYPE_OVERHEAD;
    case CUPTI_ACTIVITY_KIND_MEMORY2: return TYPE_MEMORY;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: return TYPE_POOL;
    case CUPTI_ACTIVITY_KIND_STREAM: return TYPE_STREAM;
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION: return TYPE_EXTERNAL;
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME: return TYPE_API;
    default: return TYPE_KERNEL;
    }
}

/* All fields of the record, with the driver's own times beside those that it carries. */
void record_log(const struct cupti_record *record, char layer, uint64_t buffer_serial)
{
    enum { ARGS_MAX = 48 };
    struct sim_arg args[ARGS_MAX] = {NOTE_U("record", record->serial), NOTE_U("kind", record->kind),
                                     NOTE_U("buffer", buffer_serial)};
    unsigned count = 3;
    if (!cupti_switches.log)
        return;
    enum record_type type = type_of(record->kind);
    for (unsigned i = 0; i < FIELD_COUNT && count < ARGS_MAX; i++) {
        const struct field_row *row = &fields[i];
        uint64_t value = 0;
        if (row->type != type || row->width > sizeof value ||
            row->offset + row->width > record->bytes)
            continue;
        memcpy(&value, record->payload + row->offset, row->width);
        bool is_name = strcmp(row->member, "name") == 0 && value;
        args[count++] = (struct sim_arg){row->member, is_name ? 's' : 'u', value, 0, 0};
    }
    const struct sim_note note = {.layer = layer,
                                  .what = layer == 'A' ? "made" : "delivered",
                                  .start_ns = record->start_ns,
                                  .end_ns = record->end_ns,
                                  .args = args,
                                  .arg_count = count};
    cupti_driver->log->note(&note);
}

static void deliver(struct cupti_record *record, unsigned scope)
{
    record->scope = (uint8_t)scope;
    record->serial = ++serial;
    record_log(record, 'A', 0);
    buffer_add(record);
}

/* What is the subscriber's own in it: thread ids, and memory that he frees. */
static void make_own(struct cupti_record *record, unsigned scope, bool is_first)
{
    uint32_t thread = cupti_thread_id(scope);
    void *data = NULL;
    const struct field_row *row = &fields[FIELD_OVERHEAD_overheadData];
    if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && !activity_latency(scope))
        record->queued_at = record->submitted_at = 0;
    if (record->kind != CUPTI_ACTIVITY_KIND_OVERHEAD)
        return;
    put(record, FIELD_OVERHEAD_objectId_pt_threadId, thread);
    if (is_first || record->bytes < row->offset + row->width)
        return;
    memcpy(&data, record->payload + row->offset, sizeof data);
    if (data)
        data = memcpy(malloc(OVERHEAD_DATA_BYTES), data, OVERHEAD_DATA_BYTES);
    put(record, FIELD_OVERHEAD_overheadData, (uintptr_t)data);
}

/* One for each of those who want it. */
static void finish(const struct cupti_record *record)
{
    bool is_first = true;
    for (unsigned scope = 0; scope < SCOPE_COUNT; scope++)
        if (activity_wanted(scope, record->asked)) {
            struct cupti_record own = *record;
            make_own(&own, scope, is_first);
            deliver(&own, scope);
            is_first = false;
        }
}

void record_external(unsigned scope, const struct sim_api_call *call)
{
    struct cupti_record record;
    for (unsigned kind = 1; kind < EXTERNAL_KIND_COUNT; kind++) {
        uint64_t id;
        if (!external_newest(scope, kind, &id) ||
            !activity_wanted(scope, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION))
            continue;
        start_wanted(&record, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
        PUT(EXTERNAL, externalKind, kind);
        PUT(EXTERNAL, externalId, id);
        PUT(EXTERNAL, correlationId, call->correlation);
        deliver(&record, scope);
    }
}

void record_api(unsigned scope, const struct sim_api_call *call, int domain, uint32_t cbid,
                int result)
{
    struct cupti_record record;
    start_wanted(&record, domain == CUPTI_CB_DOMAIN_RUNTIME_API ? CUPTI_ACTIVITY_KIND_RUNTIME
                                                                : CUPTI_ACTIVITY_KIND_DRIVER);
    PUT(API, cbid, cbid);
    PUT(API, processId, getpid());
    PUT(API, threadId, cupti_thread_id(scope));
    PUT(API, correlationId, call->correlation);
    PUT(API, returnValue, result);
    TIMES(API, call->begin_ns, sim_now_ns());
    deliver(&record, scope);
}

static void record_overhead(uint32_t what, uint64_t begin_ns, uint64_t end_ns, void *data)
{
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_OVERHEAD)) {
        free(data);
        return;
    }
    PUT(OVERHEAD, overheadKind, what);
    PUT(OVERHEAD, objectKind, OBJECT_THREAD);
    PUT(OVERHEAD, objectId_pt_processId, getpid());
    PUT(OVERHEAD, correlationId, correlation());
    PUT(OVERHEAD, overheadData, (uintptr_t)data);
    TIMES(OVERHEAD, begin_ns, end_ns);
    finish(&record);
}

/* 12.4 and newer say when a function was loaded at its first launch, and when a queue was full. */
static void kernel_overheads(const struct sim_trace_work *work)
{
    uint64_t begin_ns = cupti_thread.call ? cupti_thread.call->begin_ns : work->queued_ns;
    bool is_new = loaded_count < LOADED_COUNT_MAX;
    for (unsigned i = 0; i < loaded_count && is_new; i++)
        is_new = loaded[i] != work->kernel.function;
    if (is_new)
        loaded[loaded_count++] = work->kernel.function;
    if (SIM_CUPTI < 124)
        return;
    if (is_new) {
        /* A graph's launch loads several, one after another: each in half of what time is left. */
        static __thread uint64_t loaded_ns;
        uint64_t from_ns = begin_ns > loaded_ns ? begin_ns : loaded_ns;
        if (from_ns > work->queued_ns)
            from_ns = work->queued_ns;
        loaded_ns = from_ns + (work->queued_ns - from_ns) / 2;
        record_overhead(OVERHEAD_LAZY_LOADING, from_ns, loaded_ns, NULL);
    }
    if (cupti_switches.command_buffer && ++launch_count % cupti_switches.command_buffer == 0 &&
        activity_wanted_by_any(CUPTI_ACTIVITY_KIND_OVERHEAD)) {
        struct {
            uint32_t length, channel_id, channel_type;
        } *data = malloc(sizeof *data);
        _Static_assert(sizeof *data == OVERHEAD_DATA_BYTES, "as it is copied");
        if (!data)
            abort();
        data->length = (uint32_t)cupti_switches.command_buffer;
        data->channel_id = work->stream_id;
        data->channel_type = CHANNEL_COMPUTE;
        record_overhead(OVERHEAD_COMMAND_BUFFER, begin_ns, work->queued_ns, data);
    }
}

/* 13.0 and 13.1 give what a graph launch makes a wrong id in every session but the first. */
static uint32_t work_correlation(const struct sim_trace_work *work)
{
    bool is_wrong = cupti_switches.has_graph_defect && work->graph_id && activity_sessions() > 1;
    return correlation() - is_wrong;
}

/* What all device records say of their time and place. */
#define PUT_WORK(type)                                                                             \
    do {                                                                                           \
        PUT(type, deviceId, work->device);                                                         \
        PUT(type, contextId, work->context_id);                                                    \
        PUT(type, streamId, work->stream_id);                                                      \
        PUT(type, correlationId, work_correlation(work));                                          \
        PUT(type, graphId, work->graph_id);                                                        \
        TIMES(type, work->start_ns, work->end_ns);                                                 \
        record.context_id = work->context_id;                                                      \
        record.is_device = true;                                                                   \
    } while (0)

static void record_kernel(const struct sim_trace_work *work)
{
    struct cupti_record record;
    kernel_overheads(work);
    if (!start(&record, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL))
        return;
    PUT_WORK(KERNEL);
    PUT(KERNEL, registersPerThread, work->kernel.registers);
    PUT(KERNEL, gridX, work->kernel.grid[0]);
    PUT(KERNEL, gridY, work->kernel.grid[1]);
    PUT(KERNEL, gridZ, work->kernel.grid[2]);
    PUT(KERNEL, blockX, work->kernel.block[0]);
    PUT(KERNEL, blockY, work->kernel.block[1]);
    PUT(KERNEL, blockZ, work->kernel.block[2]);
    PUT(KERNEL, staticSharedMemory, work->kernel.static_shared);
    PUT(KERNEL, dynamicSharedMemory, work->kernel.dynamic_shared);
    PUT(KERNEL, localMemoryPerThread, work->kernel.local_bytes);
    PUT(KERNEL, gridId, ++grid_id);
    PUT(KERNEL, name, (uintptr_t)name_keep(work->kernel.name));
    PUT(KERNEL, graphNodeId, work->graph_node_id);
    PUT(KERNEL, channelID, work->stream_id);
    PUT(KERNEL, channelType, CHANNEL_COMPUTE);
    PUT(KERNEL, clusterX, 1);
    PUT(KERNEL, clusterY, 1);
    PUT(KERNEL, clusterZ, 1);
    record.queued_ns = work->queued_ns;
    record.queued_at = fields[FIELD_KERNEL_queued].offset;
    record.submitted_at = fields[FIELD_KERNEL_submitted].offset;
    finish(&record);
}

/* HtoD 1, DtoH 2, HtoA 3, AtoH 4, AtoA 5, AtoD 6, DtoA 7, DtoD 8, HtoH 9. */
static unsigned copy_kind(char src, char dst)
{
    static const unsigned kinds[3][3] = {{9, 1, 3}, {2, 8, 7}, {4, 6, 5}};
    return kinds[src == 'H' ? 0 : src == 'D' ? 1 : 2][dst == 'H' ? 0 : dst == 'D' ? 1 : 2];
}

#define PUT_COPY(type)                                                                             \
    do {                                                                                           \
        PUT_WORK(type);                                                                            \
        PUT(type, srcKind, work->copy.src_memory);                                                 \
        PUT(type, dstKind, work->copy.dst_memory);                                                 \
        PUT(type, flags, work->copy.is_async ? FLAG_ASYNC : 0);                                    \
        PUT(type, bytes, work->copy.bytes);                                                        \
        PUT(type, graphNodeId, work->graph_node_id);                                               \
        PUT(type, channelID, work->stream_id);                                                     \
        PUT(type, channelType, CHANNEL_COPY);                                                      \
    } while (0)

static void record_copy(const struct sim_trace_work *work)
{
    struct cupti_record record;
    if (work->copy.is_peer) {
        if (!start(&record, CUPTI_ACTIVITY_KIND_MEMCPY2))
            return;
        PUT_COPY(MEMCPY2);
        PUT(MEMCPY2, copyKind, COPY_PTOP);
        PUT(MEMCPY2, srcDeviceId, work->copy.src_device);
        PUT(MEMCPY2, srcContextId, work->copy.src_context_id);
        PUT(MEMCPY2, dstDeviceId, work->copy.dst_device);
        PUT(MEMCPY2, dstContextId, work->copy.dst_context_id);
    } else {
        if (!start(&record, CUPTI_ACTIVITY_KIND_MEMCPY))
            return;
        PUT_COPY(MEMCPY);
        PUT(MEMCPY, copyKind, copy_kind(work->copy.src, work->copy.dst));
        PUT(MEMCPY, copyCount, 1);
    }
    finish(&record);
}

static void record_fill(const struct sim_trace_work *work)
{
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_MEMSET))
        return;
    PUT_WORK(MEMSET);
    PUT(MEMSET, value, work->fill.value);
    PUT(MEMSET, bytes, work->fill.bytes);
    PUT(MEMSET, flags, work->fill.is_async ? FLAG_ASYNC : 0);
    PUT(MEMSET, memoryKind, work->fill.memory);
    PUT(MEMSET, graphNodeId, work->graph_node_id);
    PUT(MEMSET, channelID, work->stream_id);
    PUT(MEMSET, channelType, CHANNEL_COMPUTE);
    finish(&record);
}

static void record_graph(const struct sim_trace_work *work)
{
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_GRAPH_TRACE))
        return;
    PUT_WORK(GRAPH);
    PUT(GRAPH, endDeviceId, work->device);
    PUT(GRAPH, endContextId, work->context_id);
    finish(&record);
}

void record_work(const struct sim_trace_work *work)
{
    /* A graph is one record or one for each of its nodes. */
    if (work->in_graph && work->kind != SIM_WORK_GRAPH && activity_graphs_whole())
        return;
    switch (work->kind) {
    case SIM_WORK_KERNEL: record_kernel(work); break;
    case SIM_WORK_COPY: record_copy(work); break;
    case SIM_WORK_FILL: record_fill(work); break;
    case SIM_WORK_GRAPH: record_graph(work); break;
    }
}

static void record_stream(const struct sim_trace_resource *resource)
{
    enum { FLAG_DEFAULT = 1, FLAG_NON_BLOCKING = 2 };
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_STREAM))
        return;
    PUT(STREAM, contextId, resource->context_id);
    PUT(STREAM, streamId, resource->stream_id);
    PUT(STREAM, priority, resource->priority);
    PUT(STREAM, flag, resource->flags ? FLAG_NON_BLOCKING : FLAG_DEFAULT);
    PUT(STREAM, correlationId, correlation());
    finish(&record);
}

void record_resource(const struct sim_trace_resource *resource)
{
    if (resource->kind == SIM_CONTEXT_CREATED) {
        clock_context_created(resource->context_id);
        clock_anchor();
    } else if (resource->kind == SIM_STREAM_CREATED) {
        record_stream(resource);
    } else if (resource->kind == SIM_MODULE_LOADED && resource->is_compiled) {
        record_overhead(OVERHEAD_COMPILER,
                        cupti_thread.call ? cupti_thread.call->begin_ns : sim_now_ns(),
                        sim_now_ns(), NULL);
    }
}

/* An event record has no kind that can be asked for: it comes with SYNCHRONIZATION. */
static void record_event(const struct sim_trace_sync *sync)
{
    const struct field_row *stamp = &fields[FIELD_EVENT_deviceTimestamp];
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        return;
    uint32_t kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
    memcpy(record.payload, &kind, sizeof kind);
    record.kind = (uint16_t)kind;
    record.bytes = (uint16_t)cupti_record_bytes(kind);
    PUT(EVENT, correlationId, correlation());
    PUT(EVENT, contextId, sync->context_id);
    PUT(EVENT, streamId, sync->stream_id);
    PUT(EVENT, eventId, sync->event_id);
    PUT(EVENT, deviceId, sync->device);
    PUT(EVENT, cudaEventSyncId, sync->event_sync_id);
    record.context_id = sync->context_id;
    record.start_ns = record.end_ns = sync->device_ns;
    bool has_stamp = activity_event_times() && record.bytes >= stamp->offset + stamp->width;
    record.start_at = has_stamp ? stamp->offset : 0;
    finish(&record);
}

void record_sync(const struct sim_trace_sync *sync)
{
    struct cupti_record record;
    if (sync->kind == SIM_SYNC_EVENT_RECORD) {
        record_event(sync);
        return;
    }
    if (!start(&record, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION))
        return;
    PUT(SYNC, type, sync->kind);
    PUT(SYNC, correlationId, correlation());
    PUT(SYNC, contextId, sync->context_id);
    PUT(SYNC, streamId, sync->kind == SIM_SYNC_EVENT ? (uint32_t)INVALID_ID : sync->stream_id);
    PUT(SYNC, cudaEventId, sync->event_id);
    PUT(SYNC, cudaEventSyncId, sync->event_sync_id);
    TIMES(SYNC, sync->start_ns, sync->end_ns);
    finish(&record);
}

static void record_pool(const struct sim_trace_memory *memory)
{
    enum { POOL_LOCAL = 1 };
    struct cupti_record record;
    if (!start(&record, CUPTI_ACTIVITY_KIND_MEMORY_POOL))
        return;
    PUT(POOL, memoryPoolOperationType, memory->pool_operation);
    PUT(POOL, memoryPoolType, POOL_LOCAL);
    PUT(POOL, correlationId, correlation());
    PUT(POOL, processId, getpid());
    PUT(POOL, deviceId, memory->device);
    PUT(POOL, minBytesToKeep, memory->keep_bytes);
    PUT(POOL, address, memory->pool_address);
    PUT(POOL, size, memory->pool_size);
    PUT(POOL, releaseThreshold, memory->pool_threshold);
    PUT(POOL, utilizedSize, memory->pool_used);
    record.start_at = fields[FIELD_POOL_timestamp].offset;
    record.start_ns = record.end_ns = sim_now_ns();
    finish(&record);
}

void record_memory(const struct sim_trace_memory *memory)
{
    enum { ALLOCATION = 1, RELEASE = 2, POOL_LOCAL = 1 };
    struct cupti_record record;
    if (memory->is_pool) {
        record_pool(memory);
        return;
    }
    if (!start(&record, CUPTI_ACTIVITY_KIND_MEMORY2))
        return;
    PUT(MEMORY, memoryOperationType, memory->is_release ? RELEASE : ALLOCATION);
    PUT(MEMORY, memoryKind, memory->memory);
    PUT(MEMORY, correlationId, correlation());
    PUT(MEMORY, address, memory->address);
    PUT(MEMORY, bytes, memory->bytes);
    PUT(MEMORY, processId, getpid());
    PUT(MEMORY, deviceId, memory->device);
    PUT(MEMORY, contextId, memory->context_id);
    PUT(MEMORY, streamId, memory->stream_id);
    PUT(MEMORY, isAsync, memory->is_async);
    if (memory->pool_address) {
        PUT(MEMORY, memoryPoolConfig_memoryPoolType, POOL_LOCAL);
        PUT(MEMORY, memoryPoolConfig_address, memory->pool_address);
        PUT(MEMORY, memoryPoolConfig_releaseThreshold, memory->pool_threshold);
        PUT(MEMORY, memoryPoolConfig_pool_size, memory->pool_size);
        PUT(MEMORY, memoryPoolConfig_utilizedSize, memory->pool_used);
    }
    record.start_at = fields[FIELD_MEMORY_timestamp].offset;
    record.start_ns = record.end_ns = sim_now_ns();
    finish(&record);
}
