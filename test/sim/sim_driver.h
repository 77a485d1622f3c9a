/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_H
#define SIM_DRIVER_H

/*
 * The simulated driver: its objects and what its files need of each other. Device memory is host
 * memory, data moves when a copy is enqueued (kernels are not executed, so nothing can see it
 * early, except behind a host function: then it waits for that), and time is simulated: every
 * piece of work gets its start and end when it is enqueued, and a synchronise waits for the end.
 */

#define __CUDA_API_VERSION_INTERNAL
#include <cuda.h>
#include <pthread.h>

#include "sim_driver_names.h"
#include "sim_entry.h"
#include "sim_pool.h"

enum {
    DEVICE_COUNT_MAX = 16,
    CONTEXT_STACK_MAX = 16,
    CAPTURE_TAILS_MAX = 64,
};

#define SIM_INJECTED(code) driver_inject((CUresult)(code))

/* Entry points of the driver: raw ones work before cuInit. */
#define DRV_AS(sym, key, per_thread, params, body, ...)                                            \
    SIM_ENTRY(CUresult, 'D', sym, key, per_thread, params, driver_begin, body, ##__VA_ARGS__)
#define DRV_RAW(sym, params, body, ...) DRV_AS(sym, sym, 0, params, body, ##__VA_ARGS__)
#define DRV(sym, params, body, ...)                                                                \
    DRV_AS(sym, sym, 0, params, driver_guard() ?: (body), ##__VA_ARGS__)
/* The device of the context that is current when the call begins. */
#define A_DEVICE A_KU("device", context_ordinal())
/* The name and its per-thread-default-stream variant. */
#define DRV2(sym, suffix, params, body, ...)                                                       \
    DRV(sym, params, body, ##__VA_ARGS__)                                                          \
    DRV_AS(sym##suffix, sym, 1, params, driver_guard() ?: (body), ##__VA_ARGS__)

struct sim_config {
    int device_count;
    int version;
    uint64_t memory_bytes;
    uint64_t kernel_ns, block_ns;
    const char *endless; /* kernels in whose names this is never end; NULL: none */
    uint64_t copy_bytes_per_us, pageable_bytes_per_us;
    uint64_t launch_ns, alloc_ns; /* that the calls take on the host */
    bool alloc_waits;             /* for all of the device's work, before that */
    bool launch_blocking;
    bool timeline;
    bool alias;
};

struct host_op;
struct capture;

struct sim_device {
    int ordinal;
    int number;          /* of the machine's, whatever is visible */
    uint64_t used_bytes; /* atomic */
    pthread_mutex_t lock;
    CUcontext primary;
    unsigned primary_count;
    unsigned primary_flags;
    CUmemoryPool default_pool, current_pool;
    uint64_t graph_used, graph_high;
};

struct CUstream_st {
    struct sim_handle handle;
    CUcontext context;
    unsigned flags;
    int priority;
    uint64_t id;
    pthread_mutex_t lock;
    uint64_t tail_ns;        /* when the work enqueued so far ends; atomic reads */
    struct host_op *last_op; /* the host operation that later work waits for */
    struct capture *capture; /* not NULL while capturing */
    unsigned capture_tail_count;
    CUgraphNode capture_tails[CAPTURE_TAILS_MAX];
    CUstream next; /* in the context's list */
};

struct CUctx_st {
    struct sim_handle handle;
    struct sim_device *device;
    unsigned flags;
    bool primary;
    bool is_green;
    unsigned attach_count;
    uint64_t id;
    uint64_t serial; /* tells a later context at the same address apart */
    int sticky;      /* the error that has corrupted it */
    pthread_mutex_t lock;
    CUstream streams;
    CUstream legacy;
    uint64_t legacy_tail_ns, blocking_tail_ns; /* atomic */
    size_t limits[CU_LIMIT_MAX];
    unsigned cache_config;
    unsigned peers;         /* bit per device */
    unsigned capture_count; /* of streams that capture in the global mode; atomic */
};

struct CUevent_st {
    struct sim_handle handle;
    CUcontext context;
    unsigned flags;
    pthread_mutex_t lock;
    bool recorded;
    uint64_t time_ns;
    uint64_t id, record_count;
    struct host_op *op;
    struct capture *capture;
    uint64_t capture_id;
    unsigned capture_tail_count;
    CUgraphNode capture_tails[CAPTURE_TAILS_MAX];
};

struct CUmod_st {
    struct sim_handle handle;
    uint64_t id;
    CUcontext context;
    CUlibrary library;
    pthread_mutex_t lock;
    CUfunction functions;
    struct sim_global *globals;
};

/* CUlibrary is the same object without a context. */
struct CUfunc_st {
    struct sim_handle handle;
    bool is_kernel; /* a CUkernel of a library */
    CUmodule module;
    char *name;
    uint64_t duration_ns;
    int attributes[CU_FUNC_ATTRIBUTE_MAX];
    unsigned block[3], shared_bytes; /* the launch state of CUDA 2 */
    CUfunction next;
};

/* Globals are made up on demand: their size is not known from the image. */
struct sim_global {
    struct sim_global *next;
    char *name;
    CUdeviceptr address;
    size_t bytes;
};

struct CUmemPoolHandle_st {
    struct sim_handle handle;
    struct sim_device *device;
    bool is_default;
    uint64_t used, used_high, reserved, reserved_high, threshold;
    int reuse[4];
};

struct CUarray_st {
    struct sim_handle handle;
    CUcontext context;
    CUDA_ARRAY3D_DESCRIPTOR desc;
    size_t element_bytes, pitch_bytes, height, depth;
    char *memory;
    bool is_level; /* belongs to a mipmapped array */
};

extern struct sim_config sim_config;
extern struct sim_device sim_devices[DEVICE_COUNT_MAX];
extern struct sim_pool pool_contexts, pool_streams, pool_events, pool_modules, pool_functions,
    pool_mempools, pool_arrays;

/* sim_driver_init.c */
CUresult driver_guard(void);
CUresult driver_init(unsigned flags);
CUresult driver_inject(CUresult code);
int driver_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                 unsigned arg_count);
CUresult driver_device(CUdevice ordinal, struct sim_device **device);
uint64_t driver_serial(void);

/* sim_driver_context.c */
CUresult context_current(CUcontext *context);
CUcontext context_current_or_null(void);
int context_ordinal(void); /* of the current one; 0 if there is none */
CUcontext context_check(CUcontext context);
CUresult context_primary(struct sim_device *device, CUcontext *context);
CUresult primary_release(CUdevice ordinal, bool reset);
CUresult context_event(CUcontext context, CUevent event, bool record);

/* sim_driver_stream.c */
CUresult stream_resolve(CUstream handle, int pt, CUstream *stream);
CUstream stream_make(CUcontext context, unsigned flags, int priority);
void stream_discard(CUstream stream);
void stream_thread_reset(CUcontext context);
CUresult stream_wait(CUstream stream);
CUresult context_wait(CUcontext context);
void time_wait(uint64_t until_ns);

/* sim_driver_work.c: work and its place in time. */
#define ENDLESS_NS 100000000000000000u /* three years: of what never ends */
struct work {
    const char *what; /* "kernel", "memcpy", "memset" ... in the log */
    uint64_t duration_ns;
    uint64_t queued_ns, start_ns, end_ns; /* set by work_enqueue */
};
void work_enqueue(CUstream stream, struct work *work);
void work_log(CUstream stream, const struct work *work, const struct sim_arg *args, unsigned count);
uint64_t copy_duration(uint64_t bytes, bool is_pageable);
uint64_t kernel_duration(CUfunction function, const unsigned *grid);
/* The host is busy in a call for so long. */
void host_spend(uint64_t duration_ns);
void host_spend_on_memory(void);
uint64_t stream_start(CUstream stream, uint64_t now_ns);
void stream_advance(CUstream stream, uint64_t end_ns);

/* sim_driver_visible.c: which of so many devices the process sees, in its order; how many. */
int devices_visible(int count, int devices[static DEVICE_COUNT_MAX]);

/* sim_driver_meter.c: for NVML. */
void meter_init(void);
void meter_work(CUstream stream, uint64_t start_ns, uint64_t end_ns);

/* sim_driver_hostop.c: things that happen on the host in stream order. */
struct host_action {
    void (*run)(void *data);
    bool (*ready)(void *data); /* NULL: at once */
    void *data;
    bool free_data;
};
void host_op_enqueue(CUstream stream, struct host_action action);
bool host_op_done(struct host_op *op);
struct host_op *host_op_ref(struct host_op *op);
void host_op_unref(struct host_op *op);
void host_op_wait(struct host_op *op);
void host_op_join(CUstream stream, struct host_op *op);

/* sim_driver_collective.c: a kernel of NCCL, which ends when those of all ranks have begun. */
bool collective_is(CUfunction function);
void collective_meet(CUstream stream, struct work *work);

/* sim_driver_memory.c */
enum memory_kind {
    MEMORY_DEVICE,
    MEMORY_MANAGED,
    MEMORY_HOST,
    MEMORY_REGISTERED,
    MEMORY_ASYNC,
    MEMORY_IPC,
    MEMORY_VIRTUAL,
    MEMORY_GLOBAL,
};
struct memory {
    uintptr_t base;
    size_t bytes;
    enum memory_kind kind;
    unsigned flags;
    struct sim_device *device;
    CUcontext context;
    CUmemoryPool pool;
    uint64_t id;
    bool is_mapped; /* made by mmap, of this many bytes: */
    size_t mapped_bytes;
};
bool memory_find(uint64_t address, struct memory *found);
/* A pool's memory is in use, or not any more. */
void mempool_take(CUmemoryPool pool, uint64_t bytes);
void mempool_give_back(CUmemoryPool pool, uint64_t bytes);
CUresult memory_allocate(enum memory_kind kind, size_t bytes, unsigned flags, CUmemoryPool pool,
                         uint64_t *address);
CUresult memory_free(uint64_t address, unsigned kinds);
bool memory_is_pageable(uint64_t address);
void memory_context_release(CUcontext context);
CUresult memory_account(struct sim_device *device, uint64_t bytes);

/* sim_driver_copy.c */
CUresult copy_linear(uint64_t dst, uint64_t src, size_t bytes, CUstream stream, int pt, int sync,
                     const char *kind);
CUresult copy_shape(const CUDA_MEMCPY3D *shape, CUstream stream, int pt, int sync);
void copy_shape_now(const CUDA_MEMCPY3D *shape);
CUresult copy_shape_check(const CUDA_MEMCPY3D *shape);
const char *copy_kind(const CUDA_MEMCPY3D *shape);
bool copy_is_pageable(const CUDA_MEMCPY3D *shape);
struct fill {
    uint64_t dst;
    size_t pitch, width, height;
    unsigned value, element;
};
CUresult fill_memory(struct fill fill, CUstream stream, int pt, int sync);
void fill_now(const struct fill *fill);

/* sim_driver_function.c */
CUfunction function_check(CUfunction function);
CUfunction function_get(CUmodule module, const char *name, bool is_kernel);
CUresult launch_kernel(CUfunction function, const unsigned *grid, const unsigned *block,
                       unsigned shared, CUstream stream, int pt, bool cooperative);
CUresult launch_host(CUstream stream, CUhostFn fn, void *data, int pt);
CUresult launch_check(CUfunction function, const unsigned *grid, const unsigned *block,
                      unsigned shared);
const char *function_name(CUfunction function);

/* sim_driver_graph.c and sim_driver_capture.c */
struct graph_node_params {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    CUDA_MEMCPY3D copy;
    struct fill fill;
    CUDA_HOST_NODE_PARAMS host;
    CUevent event;
    CUgraph child;
    uint64_t address;
    size_t bytes;
};
struct CUgraphNode_st {
    struct sim_handle handle;
    CUgraph graph;
    CUgraphNodeType type;
    struct graph_node_params params;
    unsigned id;
    CUgraphNode *deps;
    unsigned dep_count;
    CUgraphNode clone; /* where this one went in the last copy of its graph */
};
struct CUgraph_st {
    struct sim_handle handle;
    uint64_t id;
    pthread_mutex_t lock;
    unsigned node_count, node_limit, next_node_id;
    CUgraphNode *nodes;
};
extern struct sim_pool pool_graphs, pool_nodes, pool_execs;
CUgraph graph_check(CUgraph graph);
CUgraph graph_make(void);
void graph_discard(CUgraph graph);
CUresult graph_copy(CUgraph *copy, CUgraph graph);
CUresult graph_add(CUgraph graph, CUgraphNodeType type, const struct graph_node_params *params,
                   const CUgraphNode *deps, size_t dep_count, CUgraphNode *node);

/* Returns true and the result if STREAM captures: then the work is a node, or an error. */
bool capture_take(CUstream stream, CUgraphNodeType type, const struct graph_node_params *params,
                  CUresult *result);
/* An operation that a capture does not allow: fails and invalidates it. */
CUresult capture_forbids(CUstream stream);
CUresult capture_forbids_thread(void);
bool capture_event_record(CUevent event, CUstream stream, CUresult *result);
bool capture_event_wait(CUstream stream, CUevent event, CUresult *result);
void capture_stream_gone(CUstream stream);

#endif
