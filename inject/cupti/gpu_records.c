/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_records.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/ticks.h"
#include "bytes.h"
#include "cupti/gpu_clock.h"
#include "cupti/gpu_names.h"
#include "cupti/gpu_session.h"
#include "cupti/gpu_state.h"

/* A field of the record in `view`; 0 where this libcupti does not have it. */
static inline uint64_t field(const struct cupti_view *view, enum cupti_field which)
{
    uint64_t value;
    cupti_field(which, view->record, view->bytes, &value);
    return value;
}

#define F(which) field(view, FIELD_##which)

/* How long before `start` something was; 0 if CUPTI did not say. */
static uint64_t before(uint64_t start, uint64_t at)
{
    return at && at < start ? start - at : 0;
}

/* Begin and end, from CUPTI's clock to ticks. False: counted, not recorded. */
static bool set_times(struct record *r, uint64_t start, uint64_t end)
{
    uint64_t end_ticks;
    if (!start || !end) {
        counter_add(COUNTER_GPU_TIMELESS, 1);
        return false;
    }
    if (end < start || !gpu_clock_ticks(start, &r->begin) || !gpu_clock_ticks(end, &end_ticks)) {
        counter_add(COUNTER_GPU_STRANGE_TIME, 1);
        return false;
    }
    r->duration = end_ticks - r->begin;
    return true;
}

/* No id rather than a wrong one, which may be another call's. */
static uint32_t correlation_of(const struct record *r, uint64_t correlation, uint64_t graph)
{
    if (likely(!graph || !gpu_session_unties(r->begin)))
        return (uint32_t)correlation;
    counter_add(COUNTER_GRAPH_UNTIED, 1);
    return 0;
}

static uint64_t dim3_word(uint64_t x, uint64_t y, uint64_t z)
{
    return api_dim3((uint32_t)x, (uint32_t)y, (uint32_t)z);
}

#define SET_ARGS(record, ...)                                                                      \
    do {                                                                                           \
        const uint64_t its_args[] = {__VA_ARGS__};                                                 \
        _Static_assert(sizeof its_args / 8 <= RECORD_ARGS_MAX, "too many arguments");              \
        memcpy((record)->args, its_args, sizeof its_args);                                         \
        (record)->arg_count = sizeof its_args / 8;                                                 \
    } while (0)

static bool make_kernel(struct thread *me, struct record *r, const struct cupti_view *view)
{
    uint64_t start = F(KERNEL_START);
    uint64_t local = F(KERNEL_LOCAL_TOTAL_V2);
    if (!set_times(r, start, F(KERNEL_END)))
        return false;
    r->type = RECORD_KERNEL;
    r->correlation = correlation_of(r, F(KERNEL_CORRELATION), F(KERNEL_GRAPH));
    SET_ARGS(r, F(KERNEL_DEVICE), F(KERNEL_CONTEXT), F(KERNEL_STREAM),
             gpu_name(me, (const char *)(uintptr_t)F(KERNEL_NAME), r->begin),
             dim3_word(F(KERNEL_GRID_X), F(KERNEL_GRID_Y), F(KERNEL_GRID_Z)),
             dim3_word(F(KERNEL_BLOCK_X), F(KERNEL_BLOCK_Y), F(KERNEL_BLOCK_Z)),
             F(KERNEL_REGISTERS), F(KERNEL_STATIC_SHARED), F(KERNEL_DYNAMIC_SHARED),
             local ? local : F(KERNEL_LOCAL_TOTAL), before(start, F(KERNEL_QUEUED)),
             before(start, F(KERNEL_SUBMITTED)), F(KERNEL_GRAPH), F(KERNEL_GRAPH_NODE),
             dim3_word(F(KERNEL_CLUSTER_X), F(KERNEL_CLUSTER_Y), F(KERNEL_CLUSTER_Z)),
             F(KERNEL_CHANNEL));
    return true;
}

static bool make_copy(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(MEMCPY_START), F(MEMCPY_END)))
        return false;
    r->type = RECORD_COPY;
    r->correlation = correlation_of(r, F(MEMCPY_CORRELATION), F(MEMCPY_GRAPH));
    SET_ARGS(r, F(MEMCPY_DEVICE), F(MEMCPY_CONTEXT), F(MEMCPY_STREAM), F(MEMCPY_COPY_KIND),
             F(MEMCPY_SRC_KIND), F(MEMCPY_DST_KIND), F(MEMCPY_BYTES), F(MEMCPY_FLAGS),
             F(MEMCPY_GRAPH), F(MEMCPY_GRAPH_NODE), F(MEMCPY_CHANNEL), 0, 0, 0, 0);
    return true;
}

static bool make_peer_copy(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(PEER_START), F(PEER_END)))
        return false;
    r->type = RECORD_COPY;
    r->correlation = correlation_of(r, F(PEER_CORRELATION), F(PEER_GRAPH));
    SET_ARGS(r, F(PEER_DEVICE), F(PEER_CONTEXT), F(PEER_STREAM), F(PEER_COPY_KIND),
             F(PEER_SRC_KIND), F(PEER_DST_KIND), F(PEER_BYTES), F(PEER_FLAGS), F(PEER_GRAPH),
             F(PEER_GRAPH_NODE), F(PEER_CHANNEL), F(PEER_SRC_DEVICE) + 1, F(PEER_SRC_CONTEXT) + 1,
             F(PEER_DST_DEVICE) + 1, F(PEER_DST_CONTEXT) + 1);
    return true;
}

static bool make_set(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(MEMSET_START), F(MEMSET_END)))
        return false;
    r->type = RECORD_SET;
    r->correlation = correlation_of(r, F(MEMSET_CORRELATION), F(MEMSET_GRAPH));
    SET_ARGS(r, F(MEMSET_DEVICE), F(MEMSET_CONTEXT), F(MEMSET_STREAM), F(MEMSET_VALUE),
             F(MEMSET_BYTES), F(MEMSET_MEMORY_KIND), F(MEMSET_FLAGS), F(MEMSET_GRAPH),
             F(MEMSET_GRAPH_NODE), F(MEMSET_CHANNEL));
    return true;
}

static bool make_sync(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(SYNC_START), F(SYNC_END)))
        return false;
    r->type = RECORD_SYNC;
    r->correlation = (uint32_t)F(SYNC_CORRELATION);
    SET_ARGS(r, F(SYNC_TYPE), F(SYNC_CONTEXT), F(SYNC_STREAM), F(SYNC_EVENT));
    return true;
}

static bool make_graph(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(GRAPH_START), F(GRAPH_END)))
        return false;
    r->type = RECORD_GRAPH;
    r->correlation = correlation_of(r, F(GRAPH_CORRELATION), F(GRAPH_GRAPH));
    SET_ARGS(r, F(GRAPH_DEVICE), F(GRAPH_CONTEXT), F(GRAPH_STREAM), F(GRAPH_GRAPH));
    return true;
}

static bool make_overhead(struct record *r, const struct cupti_view *view)
{
    free((void *)(uintptr_t)F(OVERHEAD_DATA)); /* ours to free, says CUPTI */
    if (!set_times(r, F(OVERHEAD_START), F(OVERHEAD_END)))
        return false;
    r->type = RECORD_OVERHEAD;
    r->correlation = (uint32_t)F(OVERHEAD_CORRELATION);
    SET_ARGS(r, F(OVERHEAD_KIND), F(OVERHEAD_OBJECT_KIND), F(OVERHEAD_PROCESS), F(OVERHEAD_THREAD));
    return true;
}

static void set_text(struct record *r, const char *text)
{
    r->bytes = (const uint8_t *)text;
    r->byte_count = text ? (uint32_t)strnlen(text, RECORD_BYTES_MAX) : 0;
}

static bool make_memory(struct record *r, const struct cupti_view *view)
{
    uint64_t at = F(MEMORY_TIMESTAMP);
    /* An imported pool has a process id in the place of its size. */
    bool local = F(MEMORY_POOL_TYPE) == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    if (!set_times(r, at, at))
        return false;
    r->type = RECORD_MEMORY;
    r->correlation = (uint32_t)F(MEMORY_CORRELATION);
    set_text(r, (const char *)(uintptr_t)F(MEMORY_NAME));
    SET_ARGS(r, F(MEMORY_OPERATION), F(MEMORY_KIND), F(MEMORY_ADDRESS), F(MEMORY_BYTES),
             F(MEMORY_DEVICE), F(MEMORY_CONTEXT), F(MEMORY_STREAM), F(MEMORY_PC), F(MEMORY_ASYNC),
             F(MEMORY_POOL_ADDRESS), local ? F(MEMORY_POOL_SIZE) + 1 : 0);
    return true;
}

static bool make_pool(struct record *r, const struct cupti_view *view)
{
    uint64_t at = F(POOL_TIMESTAMP);
    if (!set_times(r, at, at))
        return false;
    r->type = RECORD_POOL;
    r->correlation = (uint32_t)F(POOL_CORRELATION);
    SET_ARGS(r, F(POOL_OPERATION), F(POOL_TYPE), F(POOL_ADDRESS), F(POOL_DEVICE), F(POOL_KEEP),
             F(POOL_SIZE), F(POOL_UTILIZED));
    return true;
}

static uint64_t big_endian(const uint8_t *bytes)
{
    return __builtin_bswap64(load_u64(bytes));
}

static bool make_device(struct record *r, const struct cupti_view *view)
{
    const uint8_t *uuid = cupti_field_at(FIELD_DEVICE_UUID, view->record, view->bytes);
    r->type = RECORD_DEVICE;
    r->begin = ticks_now();
    set_text(r, (const char *)(uintptr_t)F(DEVICE_NAME));
    SET_ARGS(r, F(DEVICE_ID), F(DEVICE_CAPABILITY_MAJOR), F(DEVICE_CAPABILITY_MINOR),
             F(DEVICE_MULTIPROCESSORS), F(DEVICE_WARPS_MAX) * F(DEVICE_WARP), F(DEVICE_BLOCKS_MAX),
             F(DEVICE_REGISTERS_MAX), F(DEVICE_SHARED_MAX), F(DEVICE_SHARED_BLOCK_MAX),
             F(DEVICE_MEMORY), F(DEVICE_BANDWIDTH), F(DEVICE_CLOCK), uuid ? big_endian(uuid) : 0,
             uuid ? big_endian(uuid + 8) : 0, F(DEVICE_L2), F(DEVICE_WARP));
    return true;
}

static bool make_context(struct record *r, const struct cupti_view *view)
{
    r->type = RECORD_CONTEXT;
    r->begin = ticks_now();
    SET_ARGS(r, F(CONTEXT_ID), F(CONTEXT_DEVICE), F(CONTEXT_NULL_STREAM));
    return true;
}

static bool make_stream(struct record *r, const struct cupti_view *view)
{
    r->type = RECORD_STREAM;
    r->begin = ticks_now();
    r->correlation = (uint32_t)F(STREAM_CORRELATION);
    SET_ARGS(r, F(STREAM_ID), F(STREAM_CONTEXT), F(STREAM_PRIORITY), F(STREAM_FLAG));
    return true;
}

void gpu_record(struct thread *me, const struct cupti_view *view)
{
    struct record r;
    bool made = false;
    r.flags = 0;
    r.code = 0;
    r.result = 0;
    r.correlation = r.stack_id = r.weight = 0;
    r.duration = 0;
    r.byte_count = 0;
    switch (view->kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL: made = make_kernel(me, &r, view); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY: made = make_copy(&r, view); break;
    case CUPTI_ACTIVITY_KIND_MEMCPY2: made = make_peer_copy(&r, view); break;
    case CUPTI_ACTIVITY_KIND_MEMSET: made = make_set(&r, view); break;
    case CUPTI_ACTIVITY_KIND_SYNCHRONIZATION: made = make_sync(&r, view); break;
    case CUPTI_ACTIVITY_KIND_GRAPH_TRACE: made = make_graph(&r, view); break;
    case CUPTI_ACTIVITY_KIND_OVERHEAD: made = make_overhead(&r, view); break;
    case CUPTI_ACTIVITY_KIND_MEMORY2: made = make_memory(&r, view); break;
    case CUPTI_ACTIVITY_KIND_MEMORY_POOL: made = make_pool(&r, view); break;
    case CUPTI_ACTIVITY_KIND_DEVICE: made = make_device(&r, view); break;
    case CUPTI_ACTIVITY_KIND_CONTEXT: made = make_context(&r, view); break;
    case CUPTI_ACTIVITY_KIND_STREAM: made = make_stream(&r, view); break;
    default: break; /* by-products of kinds that are enabled, as CUDA_EVENT is */
    }
    if (made)
        thread_append(me, &r);
}
