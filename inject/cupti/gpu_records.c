/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_records.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "base/ticks.h"
#include "bytes.h"
#include "cupti/gpu_clock.h"
#include "cupti/gpu_devices.h"
#include "cupti/gpu_names.h"
#include "cupti/gpu_session.h"
#include "cupti/gpu_state.h"
#include "cupti/gpu_unwanted.h"

/* Reads a field of the record in `view`; 0 if this libcupti does not have it. */
static inline uint64_t field(const struct cupti_view *view, enum cupti_field which)
{
    uint64_t value;
    cupti_field(which, view->record, view->bytes, &value);
    return value;
}

#define F(which) field(view, FIELD_##which)

/* How long before `start` the time `at` was; 0 if CUPTI did not report it. */
static uint64_t gpu_records_before(uint64_t start, uint64_t at)
{
    return at && at < start ? start - at : 0;
}

/* Converts begin and end from CUPTI's clock to ticks. False: the record is counted and not
 * recorded. */
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

/* Prefers no id to a wrong one, which may be another call's. */
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

/* Sets arguments by their enumerators in events.def: [KERNEL_DEVICE] = ...; the others are 0. */
#define SET_ARGS(r, NAME, ...)                                                                     \
    do {                                                                                           \
        const uint64_t its_args[RECORD_##NAME##_ARGS] = {__VA_ARGS__};                             \
        (r)->type = RECORD_##NAME;                                                                 \
        memcpy((r)->args, its_args, sizeof its_args);                                              \
        (r)->arg_count = RECORD_##NAME##_ARGS;                                                     \
    } while (0)

static bool make_kernel(struct thread *me, struct record *r, const struct cupti_view *view)
{
    uint64_t start = F(KERNEL_START);
    uint64_t local = F(KERNEL_LOCAL_TOTAL_V2);
    if (!set_times(r, start, F(KERNEL_END)))
        return false;
    r->correlation = correlation_of(r, F(KERNEL_CORRELATION), F(KERNEL_GRAPH));
    SET_ARGS(
        r, KERNEL, [KERNEL_DEVICE] = F(KERNEL_DEVICE), [KERNEL_CONTEXT] = F(KERNEL_CONTEXT),
        [KERNEL_STREAM] = F(KERNEL_STREAM),
        [KERNEL_NAME_INDEX] = gpu_name(me, (const char *)(uintptr_t)F(KERNEL_NAME), r->begin),
        [KERNEL_GRID] = dim3_word(F(KERNEL_GRID_X), F(KERNEL_GRID_Y), F(KERNEL_GRID_Z)),
        [KERNEL_BLOCK] = dim3_word(F(KERNEL_BLOCK_X), F(KERNEL_BLOCK_Y), F(KERNEL_BLOCK_Z)),
        [KERNEL_REGISTERS] = F(KERNEL_REGISTERS), [KERNEL_STATIC_SHARED] = F(KERNEL_STATIC_SHARED),
        [KERNEL_DYNAMIC_SHARED] = F(KERNEL_DYNAMIC_SHARED),
        [KERNEL_LOCAL] = local ? local : F(KERNEL_LOCAL_TOTAL),
        [KERNEL_QUEUED] = gpu_records_before(start, F(KERNEL_QUEUED)),
        [KERNEL_SUBMITTED] = gpu_records_before(start, F(KERNEL_SUBMITTED)),
        [KERNEL_GRAPH] = F(KERNEL_GRAPH), [KERNEL_GRAPH_NODE] = F(KERNEL_GRAPH_NODE),
        [KERNEL_CLUSTER] = dim3_word(F(KERNEL_CLUSTER_X), F(KERNEL_CLUSTER_Y), F(KERNEL_CLUSTER_Z)),
        [KERNEL_CHANNEL] = F(KERNEL_CHANNEL));
    return true;
}

static bool make_copy(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(MEMCPY_START), F(MEMCPY_END)))
        return false;
    r->correlation = correlation_of(r, F(MEMCPY_CORRELATION), F(MEMCPY_GRAPH));
    SET_ARGS(r, COPY, [COPY_DEVICE] = F(MEMCPY_DEVICE), [COPY_CONTEXT] = F(MEMCPY_CONTEXT),
             [COPY_STREAM] = F(MEMCPY_STREAM), [COPY_KIND] = F(MEMCPY_COPY_KIND),
             [COPY_SOURCE] = F(MEMCPY_SRC_KIND), [COPY_DESTINATION] = F(MEMCPY_DST_KIND),
             [COPY_BYTES] = F(MEMCPY_BYTES), [COPY_FLAGS] = F(MEMCPY_FLAGS),
             [COPY_GRAPH] = F(MEMCPY_GRAPH), [COPY_GRAPH_NODE] = F(MEMCPY_GRAPH_NODE),
             [COPY_CHANNEL] = F(MEMCPY_CHANNEL));
    return true;
}

static bool make_peer_copy(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(PEER_START), F(PEER_END)))
        return false;
    r->correlation = correlation_of(r, F(PEER_CORRELATION), F(PEER_GRAPH));
    SET_ARGS(r, COPY, [COPY_DEVICE] = F(PEER_DEVICE), [COPY_CONTEXT] = F(PEER_CONTEXT),
             [COPY_STREAM] = F(PEER_STREAM), [COPY_KIND] = F(PEER_COPY_KIND),
             [COPY_SOURCE] = F(PEER_SRC_KIND), [COPY_DESTINATION] = F(PEER_DST_KIND),
             [COPY_BYTES] = F(PEER_BYTES), [COPY_FLAGS] = F(PEER_FLAGS),
             [COPY_GRAPH] = F(PEER_GRAPH), [COPY_GRAPH_NODE] = F(PEER_GRAPH_NODE),
             [COPY_CHANNEL] = F(PEER_CHANNEL), [COPY_SOURCE_DEVICE] = F(PEER_SRC_DEVICE) + 1,
             [COPY_SOURCE_CONTEXT] = F(PEER_SRC_CONTEXT) + 1,
             [COPY_DESTINATION_DEVICE] = F(PEER_DST_DEVICE) + 1,
             [COPY_DESTINATION_CONTEXT] = F(PEER_DST_CONTEXT) + 1);
    return true;
}

static bool make_set(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(MEMSET_START), F(MEMSET_END)))
        return false;
    r->correlation = correlation_of(r, F(MEMSET_CORRELATION), F(MEMSET_GRAPH));
    SET_ARGS(r, SET, [SET_DEVICE] = F(MEMSET_DEVICE), [SET_CONTEXT] = F(MEMSET_CONTEXT),
             [SET_STREAM] = F(MEMSET_STREAM), [SET_VALUE] = F(MEMSET_VALUE),
             [SET_BYTES] = F(MEMSET_BYTES), [SET_KIND] = F(MEMSET_MEMORY_KIND),
             [SET_FLAGS] = F(MEMSET_FLAGS), [SET_GRAPH] = F(MEMSET_GRAPH),
             [SET_GRAPH_NODE] = F(MEMSET_GRAPH_NODE), [SET_CHANNEL] = F(MEMSET_CHANNEL));
    return true;
}

static bool make_sync(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(SYNC_START), F(SYNC_END)))
        return false;
    r->correlation = (uint32_t)F(SYNC_CORRELATION);
    SET_ARGS(r, SYNC, [SYNC_KIND] = F(SYNC_TYPE), [SYNC_CONTEXT] = F(SYNC_CONTEXT),
             [SYNC_STREAM] = F(SYNC_STREAM), [SYNC_EVENT] = F(SYNC_EVENT));
    return true;
}

static bool make_graph(struct record *r, const struct cupti_view *view)
{
    if (!set_times(r, F(GRAPH_START), F(GRAPH_END)))
        return false;
    r->correlation = correlation_of(r, F(GRAPH_CORRELATION), F(GRAPH_GRAPH));
    SET_ARGS(r, GRAPH, [GRAPH_DEVICE] = F(GRAPH_DEVICE), [GRAPH_CONTEXT] = F(GRAPH_CONTEXT),
             [GRAPH_STREAM] = F(GRAPH_STREAM), [GRAPH_GRAPH] = F(GRAPH_GRAPH));
    return true;
}

static bool make_overhead(struct record *r, const struct cupti_view *view)
{
    /* CUPTI's documentation says that the client must free it */
    free((void *)(uintptr_t)F(OVERHEAD_DATA));
    if (!set_times(r, F(OVERHEAD_START), F(OVERHEAD_END)))
        return false;
    r->correlation = (uint32_t)F(OVERHEAD_CORRELATION);
    SET_ARGS(
        r,
        OVERHEAD, [OVERHEAD_KIND] = F(OVERHEAD_KIND), [OVERHEAD_OBJECT] = F(OVERHEAD_OBJECT_KIND),
        [OVERHEAD_PROCESS] = F(OVERHEAD_PROCESS), [OVERHEAD_THREAD] = F(OVERHEAD_THREAD));
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
    /* An imported pool has a process id in place of its size. */
    bool local = F(MEMORY_POOL_TYPE) == CUPTI_ACTIVITY_MEMORY_POOL_TYPE_LOCAL;
    if (!set_times(r, at, at))
        return false;
    r->correlation = (uint32_t)F(MEMORY_CORRELATION);
    set_text(r, (const char *)(uintptr_t)F(MEMORY_NAME));
    SET_ARGS(r, MEMORY, [MEMORY_OPERATION] = F(MEMORY_OPERATION), [MEMORY_KIND] = F(MEMORY_KIND),
             [MEMORY_ADDRESS] = F(MEMORY_ADDRESS), [MEMORY_BYTES] = F(MEMORY_BYTES),
             [MEMORY_DEVICE] = F(MEMORY_DEVICE), [MEMORY_CONTEXT] = F(MEMORY_CONTEXT),
             [MEMORY_STREAM] = F(MEMORY_STREAM), [MEMORY_PC] = F(MEMORY_PC),
             [MEMORY_ASYNC] = F(MEMORY_ASYNC), [MEMORY_POOL] = F(MEMORY_POOL_ADDRESS),
             [MEMORY_POOL_BYTES] = local ? F(MEMORY_POOL_SIZE) + 1 : 0);
    return true;
}

static bool make_pool(struct record *r, const struct cupti_view *view)
{
    uint64_t at = F(POOL_TIMESTAMP);
    if (!set_times(r, at, at))
        return false;
    r->correlation = (uint32_t)F(POOL_CORRELATION);
    SET_ARGS(
        r, POOL, [POOL_OPERATION] = F(POOL_OPERATION), [POOL_KIND] = F(POOL_TYPE),
        [POOL_POOL] = F(POOL_ADDRESS), [POOL_DEVICE] = F(POOL_DEVICE), [POOL_KEPT] = F(POOL_KEEP),
        [POOL_BYTES] = F(POOL_SIZE), [POOL_USED] = F(POOL_UTILIZED));
    return true;
}

/* CUPTI's own context records do not come (gpu_devices.h); the first work in a context shows it. */
static void follow_context(struct thread *me, const struct record *work)
{
    /* all records of work begin with these arguments */
    enum { DEVICE, CONTEXT, CONTEXTS_MAX = 4096 };
    /* one bit per context, for the recording of `epoch` */
    static uint64_t reported[CONTEXTS_MAX / 64];
    static uint64_t epoch;
    uint64_t context = work->args[CONTEXT];
    if (unlikely(epoch != (me->epoch & EPOCH_MASK))) {
        memset(reported, 0, sizeof reported);
        epoch = me->epoch & EPOCH_MASK;
    }
    if (likely(context >= CONTEXTS_MAX || reported[context / 64] >> context % 64 & 1))
        return;
    reported[context / 64] |= 1ull << context % 64;
    gpu_devices_use(work->args[DEVICE]);
    struct record r = {
        RECORD_WITH(CONTEXT, [CONTEXT_CONTEXT] = context, [CONTEXT_DEVICE] = work->args[DEVICE]),
        .begin = work->begin};
    thread_append(me, &r);
}

static bool make_stream(struct record *r, const struct cupti_view *view)
{
    r->begin = ticks_now();
    r->correlation = (uint32_t)F(STREAM_CORRELATION);
    SET_ARGS(r, STREAM, [STREAM_STREAM] = F(STREAM_ID), [STREAM_CONTEXT] = F(STREAM_CONTEXT),
             [STREAM_PRIORITY] = F(STREAM_PRIORITY), [STREAM_FLAGS] = F(STREAM_FLAG));
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
    case CUPTI_ACTIVITY_KIND_STREAM: made = make_stream(&r, view); break;
    default: break; /* by-products of enabled kinds, such as CUDA_EVENT */
    }
    if (made && unlikely(gpu_unwanted_is((unsigned)view->kind, r.correlation)))
        return;
    if (made && event_shows[r.type] == EVENT_WORK)
        follow_context(me, &r);
    if (made)
        thread_append(me, &r);
}
