/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_TRACE_H
#define SIM_TRACE_H

/*
 * The seam between the simulated driver and runtime on one side and the simulated CUPTI on the
 * other. CUPTI hands in a table of functions by sim_cupti_attach, which the driver exports for it
 * alone, and gets one back. Both sides belong to the simulation; nothing of this is in the real
 * libraries, where the same passes through private tables. Times are CLOCK_MONOTONIC ns.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim_log.h"

/* One entry into the API, on the stack of the entry point. */
struct sim_api_call {
    const struct sim_tracer *tracer;
    struct sim_symbol *symbol;
    const void *params;         /* the arguments as a struct, in their order */
    const struct sim_arg *args; /* only while enter runs */
    unsigned arg_count;
    uint64_t begin_ns;
    uint64_t correlation_data;
    uint32_t correlation;
    bool is_outermost;
    const char *kernel; /* what is launched, or NULL */
    struct sim_api_call *outer;
};

enum sim_work_kind { SIM_WORK_KERNEL, SIM_WORK_COPY, SIM_WORK_FILL, SIM_WORK_GRAPH };

/* Work of the device, told when it is enqueued. */
struct sim_trace_work {
    enum sim_work_kind kind;
    uint64_t queued_ns, start_ns, end_ns;
    uint32_t device, context_id, stream_id;
    bool in_graph;
    uint64_t graph_node_id;
    uint32_t graph_id;
    union {
        struct {
            const char *name;
            const void *function;
            unsigned grid[3], block[3], dynamic_shared, static_shared, registers, local_bytes;
        } kernel;
        struct {
            uint64_t bytes;
            char src, dst; /* H, D or A */
            uint8_t src_memory, dst_memory;
            bool is_async, is_peer;
            uint32_t src_device, dst_device, src_context_id, dst_context_id;
        } copy;
        struct {
            uint64_t bytes;
            uint32_t value;
            uint8_t memory;
            bool is_async;
        } fill;
    };
};

/* Values as in CUPTI's resource and synchronisation ids, for want of a reason to differ. */
enum sim_resource_kind {
    SIM_CONTEXT_CREATED = 1,
    SIM_CONTEXT_DESTROY = 2,
    SIM_STREAM_CREATED = 3,
    SIM_STREAM_DESTROY = 4,
    SIM_INIT_FINISHED = 5,
    SIM_MODULE_LOADED = 6,
    SIM_MODULE_UNLOAD = 7,
};

struct sim_trace_resource {
    enum sim_resource_kind kind;
    void *context;
    uint32_t context_id;
    void *stream;
    uint32_t stream_id, flags;
    int priority;
    uint32_t module_id;
    const void *image;
    bool is_compiled; /* the image was PTX */
};

enum sim_sync_kind {
    SIM_SYNC_EVENT = 1,
    SIM_SYNC_STREAM_WAIT_EVENT = 2,
    SIM_SYNC_STREAM = 3,
    SIM_SYNC_CONTEXT = 4,
    SIM_SYNC_EVENT_RECORD = 5, /* not a wait: an event was put into a stream */
};

struct sim_trace_sync {
    enum sim_sync_kind kind;
    uint64_t start_ns, end_ns;
    void *context, *stream;
    uint32_t context_id, stream_id, event_id, device;
    uint64_t event_sync_id;
    uint64_t device_ns;
};

struct sim_trace_memory {
    bool is_release, is_async,
        is_pool;            /* is_pool: the pool itself was made, trimmed or destroyed */
    uint8_t pool_operation; /* 1 created, 2 destroyed, 3 trimmed */
    uint8_t memory;         /* kind, as the records number them */
    uint64_t address, bytes;
    uint32_t device, context_id, stream_id;
    uint64_t pool_address, pool_threshold, pool_size, pool_used, keep_bytes;
    const void *caller;
};

/* What the simulated CUPTI hands in. Called on the thread that made the call. */
struct sim_tracer {
    void (*enter)(struct sim_api_call *call);
    void (*leave)(struct sim_api_call *call, int result);
    void (*work)(const struct sim_trace_work *work);
    void (*resource)(const struct sim_trace_resource *resource);
    void (*sync)(const struct sim_trace_sync *sync);
    void (*memory)(const struct sim_trace_memory *memory);
    void (*driver_gone)(void); /* in the driver's own atexit handler */
};

/* What it gets. */
struct sim_traced {
    int (*init)(bool *was_ready); /* the result of cuInit(0) */
    bool (*is_alive)(void);       /* not in a forked child, not after exit */
    int (*version)(void);
    int (*device_count)(void);
    /* 0 or an error: these take what cuptiGet... take. */
    int (*stream_id)(void *context, void *stream, bool per_thread, uint32_t *id);
    int (*context_id)(void *context, uint32_t *id);
    int (*context_device)(void *context, uint32_t *id);
    int (*graph_id)(void *graph, uint32_t *id);
    int (*exec_id)(void *exec, uint32_t *id);
    int (*node_id)(void *node, uint64_t *id);
    void *(*current_context)(void);
    /* Streams and contexts that are there already. */
    void (*each_resource)(void (*visit)(const struct sim_trace_resource *resource));
    const struct sim_log_ops *log;
};

/* NULL if another tracer is attached and did not detach. */
const struct sim_traced *sim_cupti_attach(const struct sim_tracer *tracer);

/* Where this library finds the tracer: the driver's slot, once it is known. */
extern const struct sim_tracer *const *sim_tracer_slot;
const struct sim_tracer *const *sim_tracer_connect(void);

static inline const struct sim_tracer *sim_tracer_current(void)
{
    const struct sim_tracer *const *slot = __atomic_load_n(&sim_tracer_slot, __ATOMIC_ACQUIRE);
    if (__builtin_expect(!slot, 0))
        slot = sim_tracer_connect();
    return __atomic_load_n(slot, __ATOMIC_ACQUIRE);
}

static inline void sim_api_enter(struct sim_api_call *call, const struct sim_tracer *tracer,
                                 struct sim_symbol *symbol, const void *params,
                                 const struct sim_arg *args, unsigned arg_count)
{
    *call = (struct sim_api_call){
        .tracer = tracer, .symbol = symbol, .params = params, .args = args, .arg_count = arg_count};
    tracer->enter(call);
}

static inline void sim_api_leave(struct sim_api_call *call, int result)
{
    call->tracer->leave(call, result);
}

#endif
