/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

/* What the simulated CUPTI is told of, and what it may ask. */

static const struct sim_tracer *tracer; /* atomic */

const struct sim_tracer *const *sim_tracer_slot = &tracer;

const struct sim_tracer *const *sim_tracer_connect(void)
{
    return &tracer;
}

bool work_wanted(void)
{
    return sim_log_gpu_wanted() || sim_tracer_current();
}

/* Memory kinds as the records of CUPTI number them. */
static uint8_t memory_number(uint64_t address, uint32_t *device, uint32_t *context_id)
{
    enum { PAGEABLE = 1, PINNED = 2, DEVICE = 3, MANAGED = 5, DEVICE_STATIC = 6 };
    struct memory memory;
    if (!memory_find(address, &memory))
        return PAGEABLE;
    if (device) {
        *device = (uint32_t)memory.device->ordinal;
        *context_id = context_check(memory.context) ? (uint32_t)memory.context->id : 0;
    }
    switch (memory.kind) {
    case MEMORY_HOST:
    case MEMORY_REGISTERED: return PINNED;
    case MEMORY_MANAGED: return MANAGED;
    case MEMORY_GLOBAL: return DEVICE_STATIC;
    default: return DEVICE;
    }
}

static struct sim_trace_work work_base(enum sim_work_kind kind, CUstream stream,
                                       const struct work *work, const struct graph_place *place)
{
    struct sim_trace_work base = {
        .kind = kind,
        .queued_ns = work->queued_ns,
        .start_ns = work->start_ns,
        .end_ns = work->end_ns,
        .device = (uint32_t)stream->context->device->ordinal,
        .context_id = (uint32_t)stream->context->id,
        .stream_id = (uint32_t)stream->id,
    };
    if (place) {
        base.in_graph = true;
        base.graph_id = (uint32_t)place->exec_id;
        base.graph_node_id = place->exec_id << 32 | place->node_id;
    }
    return base;
}

void trace_kernel(CUstream stream, const struct work *work, const struct graph_node_params *params,
                  const struct graph_place *place)
{
    const struct sim_tracer *to = sim_tracer_current();
    CUfunction function = function_check(params->function);
    if (!to || !function)
        return;
    struct sim_trace_work told = work_base(SIM_WORK_KERNEL, stream, work, place);
    told.kernel.name = function->name;
    told.kernel.function = function;
    memcpy(told.kernel.grid, params->grid, sizeof told.kernel.grid);
    memcpy(told.kernel.block, params->block, sizeof told.kernel.block);
    told.kernel.dynamic_shared = params->shared;
    told.kernel.static_shared = (unsigned)function->attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES];
    told.kernel.registers = (unsigned)function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS];
    told.kernel.local_bytes = (unsigned)function->attributes[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES];
    to->work(&told);
}

void trace_copy(CUstream stream, const struct work *work, const CUDA_MEMCPY3D *shape, bool is_async,
                const struct graph_place *place)
{
    enum { ARRAY = 4 };
    const struct sim_tracer *to = sim_tracer_current();
    if (!to)
        return;
    struct sim_trace_work told = work_base(SIM_WORK_COPY, stream, work, place);
    const char *kind = copy_kind(shape);
    told.copy.bytes = shape->WidthInBytes * shape->Height * shape->Depth;
    told.copy.src = kind[0];
    told.copy.dst = kind[3];
    told.copy.is_async = is_async;
    told.copy.src_device = told.copy.dst_device = told.device;
    told.copy.src_context_id = told.copy.dst_context_id = told.context_id;
    uint64_t src =
        shape->srcMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)shape->srcHost : shape->srcDevice;
    uint64_t dst =
        shape->dstMemoryType == CU_MEMORYTYPE_HOST ? (uintptr_t)shape->dstHost : shape->dstDevice;
    told.copy.src_memory =
        kind[0] == 'A' ? ARRAY
                       : memory_number(src, &told.copy.src_device, &told.copy.src_context_id);
    told.copy.dst_memory =
        kind[3] == 'A' ? ARRAY
                       : memory_number(dst, &told.copy.dst_device, &told.copy.dst_context_id);
    told.copy.is_peer =
        kind[0] == 'D' && kind[3] == 'D' && told.copy.src_device != told.copy.dst_device;
    to->work(&told);
}

void trace_fill(CUstream stream, const struct work *work, const struct fill *fill, bool is_async,
                const struct graph_place *place)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to)
        return;
    struct sim_trace_work told = work_base(SIM_WORK_FILL, stream, work, place);
    told.fill.bytes = fill->width * fill->height * fill->element;
    told.fill.value = fill->value;
    told.fill.memory = memory_number(fill->dst, NULL, NULL);
    told.fill.is_async = is_async;
    to->work(&told);
}

void trace_graph(CUstream stream, const struct work *work, uint64_t exec_id)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to)
        return;
    struct sim_trace_work told =
        work_base(SIM_WORK_GRAPH, stream, work, &(struct graph_place){exec_id, 0});
    to->work(&told);
}

static struct sim_trace_resource resource_of(enum sim_resource_kind kind, CUcontext context,
                                             CUstream stream)
{
    struct sim_trace_resource told = {.kind = kind, .context = context, .stream = stream};
    if (context)
        told.context_id = (uint32_t)context->id;
    if (stream) {
        told.stream_id = (uint32_t)stream->id;
        told.flags = stream->flags;
        told.priority = stream->priority;
    }
    return told;
}

void trace_context(enum sim_resource_kind kind, CUcontext context)
{
    const struct sim_tracer *to = sim_tracer_current();
    struct sim_trace_resource told;
    if (!to)
        return;
    told = resource_of(kind, context, NULL);
    to->resource(&told);
}

void trace_stream(enum sim_resource_kind kind, CUstream stream)
{
    const struct sim_tracer *to = sim_tracer_current();
    struct sim_trace_resource told;
    if (!to)
        return;
    told = resource_of(kind, stream->context, stream);
    to->resource(&told);
}

void trace_module(enum sim_resource_kind kind, CUcontext context, uint64_t id, const void *image)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to)
        return;
    struct sim_trace_resource told = resource_of(kind, context_check(context), NULL);
    told.module_id = (uint32_t)id;
    told.image = image;
    /* PTX is text; anything else is machine code. */
    told.is_compiled = image && memcmp(image, "//", 2) == 0;
    to->resource(&told);
}

void trace_sync(enum sim_sync_kind kind, CUcontext context, CUstream stream, CUevent event,
                uint64_t start_ns)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to || (!context && !stream))
        return;
    if (!context)
        context = stream->context;
    struct sim_trace_sync told = {
        .kind = kind,
        .start_ns = start_ns,
        .end_ns = sim_now_ns(),
        .context = context,
        .stream = stream,
        .context_id = (uint32_t)context->id,
        .stream_id = stream ? (uint32_t)stream->id : UINT32_MAX,
        .event_id = event ? (uint32_t)event->id : UINT32_MAX,
        .device = (uint32_t)context->device->ordinal,
        .event_sync_id = event ? event->record_count : 0,
        .device_ns = event ? event->time_ns : 0,
    };
    to->sync(&told);
}

void trace_memory(const struct memory *memory, bool is_release)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to || memory->kind == MEMORY_VIRTUAL || memory->kind == MEMORY_IPC)
        return;
    CUcontext context = context_check(memory->context);
    struct sim_trace_memory told = {
        .is_release = is_release,
        .is_async = memory->kind == MEMORY_ASYNC,
        .memory = memory->kind == MEMORY_HOST || memory->kind == MEMORY_REGISTERED ? 2
                  : memory->kind == MEMORY_MANAGED                                 ? 5
                  : memory->kind == MEMORY_GLOBAL                                  ? 6
                                                                                   : 3,
        .address = memory->base,
        .bytes = memory->bytes,
        .device = (uint32_t)memory->device->ordinal,
        .context_id = context ? (uint32_t)context->id : 0,
        .stream_id =
            context && memory->kind == MEMORY_ASYNC ? (uint32_t)context->legacy->id : UINT32_MAX,
    };
    if (memory->pool && sim_pool_has(&pool_mempools, memory->pool)) {
        told.pool_address = (uintptr_t)memory->pool;
        told.pool_threshold = memory->pool->threshold;
        told.pool_size = memory->pool->reserved;
        told.pool_used = memory->pool->used;
    }
    to->memory(&told);
}

void trace_mempool(CUmemoryPool pool, unsigned operation, uint64_t keep_bytes)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (!to)
        return;
    struct sim_trace_memory told = {
        .is_pool = true,
        .pool_operation = (uint8_t)operation,
        .device = (uint32_t)pool->device->ordinal,
        .pool_address = (uintptr_t)pool,
        .pool_threshold = pool->threshold,
        .pool_size = pool->reserved,
        .pool_used = pool->used,
        .keep_bytes = keep_bytes,
    };
    to->memory(&told);
}

void trace_init_finished(void)
{
    const struct sim_tracer *to = sim_tracer_current();
    const struct sim_trace_resource told = {.kind = SIM_INIT_FINISHED};
    if (to)
        to->resource(&told);
}

void trace_driver_gone(void)
{
    const struct sim_tracer *to = sim_tracer_current();
    if (to)
        to->driver_gone();
}

static int ask_init(bool *was_ready)
{
    *was_ready = driver_guard() == CUDA_SUCCESS;
    return *was_ready ? 0 : (int)driver_init(0);
}

static bool ask_alive(void)
{
    return driver_guard() == CUDA_SUCCESS;
}

static int ask_version(void)
{
    return sim_config.version;
}

static int ask_device_count(void)
{
    return sim_config.device_count;
}

static int ask_stream_id(void *context, void *handle, bool per_thread, uint32_t *id)
{
    CUstream stream = handle;
    if (!sim_pool_has(&pool_streams, stream)) {
        CUcontext given = context ? context_check(context) : context_current_or_null();
        if (!given)
            return CUDA_ERROR_INVALID_CONTEXT;
        bool is_legacy = handle == CU_STREAM_LEGACY || (!handle && !per_thread);
        if (is_legacy)
            stream = given->legacy;
        else if (stream_resolve(handle, per_thread, &stream) != CUDA_SUCCESS)
            return CUDA_ERROR_INVALID_HANDLE;
    }
    *id = (uint32_t)stream->id;
    return CUDA_SUCCESS;
}

static int ask_context_id(void *context, uint32_t *id)
{
    CUcontext given = context_check(context);
    if (!given)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = (uint32_t)given->id;
    return CUDA_SUCCESS;
}

static int ask_context_device(void *context, uint32_t *id)
{
    CUcontext given = context ? context_check(context) : context_current_or_null();
    if (!given)
        return CUDA_ERROR_INVALID_CONTEXT;
    *id = (uint32_t)given->device->ordinal;
    return CUDA_SUCCESS;
}

static int ask_graph_id(void *graph, uint32_t *id)
{
    if (!graph_check(graph))
        return CUDA_ERROR_INVALID_VALUE;
    *id = (uint32_t)((CUgraph)graph)->id;
    return CUDA_SUCCESS;
}

static int ask_node_id(void *handle, uint64_t *id)
{
    CUgraphNode node = handle;
    if (!sim_pool_has(&pool_nodes, node))
        return CUDA_ERROR_INVALID_VALUE;
    *id = node->graph->id << 32 | node->id;
    return CUDA_SUCCESS;
}

static void *ask_current_context(void)
{
    return context_current_or_null();
}

static void ask_each_resource(void (*visit)(const struct sim_trace_resource *resource))
{
    const char *base = __atomic_load_n(&pool_contexts.base, __ATOMIC_ACQUIRE);
    for (uint32_t i = 0; base && i < pool_contexts.used; i++) {
        CUcontext context = (CUcontext)(uintptr_t)(base + i * pool_contexts.item_bytes);
        if (!context_check(context))
            continue;
        struct sim_trace_resource told = resource_of(SIM_CONTEXT_CREATED, context, NULL);
        visit(&told);
        told = resource_of(SIM_STREAM_CREATED, context, context->legacy);
        visit(&told);
        pthread_mutex_lock(&context->lock);
        for (CUstream stream = context->streams; stream; stream = stream->next) {
            told = resource_of(SIM_STREAM_CREATED, context, stream);
            visit(&told);
        }
        pthread_mutex_unlock(&context->lock);
    }
}

static const struct sim_traced traced = {
    .init = ask_init,
    .is_alive = ask_alive,
    .version = ask_version,
    .device_count = ask_device_count,
    .stream_id = ask_stream_id,
    .context_id = ask_context_id,
    .context_device = ask_context_device,
    .graph_id = ask_graph_id,
    .exec_id = exec_id,
    .node_id = ask_node_id,
    .current_context = ask_current_context,
    .each_resource = ask_each_resource,
    .log = &sim_log_local,
};

/* The one name that the real driver does not have. */
SIM_EXPORT const struct sim_traced *sim_cupti_attach(const struct sim_tracer *given)
{
    const struct sim_tracer *nobody = NULL;
    if (given &&
        !__atomic_compare_exchange_n(&tracer, &nobody, given, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE) &&
        nobody != given)
        return NULL;
    if (sim_mode == SIM_MODE_UNKNOWN)
        sim_mode_init();
    return &traced;
}
