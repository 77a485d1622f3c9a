/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_TRACE_H
#define SIM_DRIVER_TRACE_H

/*
 * What the driver's files tell the simulated CUPTI, if one is attached. All may be called at any
 * time, on the thread that makes the call; none takes a lock of the driver.
 */

#include "sim_driver.h"
#include "sim_trace.h"

/* Where work of a graph belongs; NULL for work of a stream. */
struct graph_place {
    uint64_t exec_id;
    unsigned node_id;
};

/* Whether work is worth describing: for the log or for a tracer. */
bool work_wanted(void);

void trace_kernel(CUstream stream, const struct work *work, const struct graph_node_params *params,
                  const struct graph_place *place);
void trace_copy(CUstream stream, const struct work *work, const CUDA_MEMCPY3D *shape, bool is_async,
                const struct graph_place *place);
void trace_fill(CUstream stream, const struct work *work, const struct fill *fill, bool is_async,
                const struct graph_place *place);
void trace_graph(CUstream stream, const struct work *work, uint64_t exec_id);
void trace_context(enum sim_resource_kind kind, CUcontext context);
void trace_stream(enum sim_resource_kind kind, CUstream stream);
void trace_module(enum sim_resource_kind kind, CUcontext context, uint64_t id, const void *image);
void trace_sync(enum sim_sync_kind kind, CUcontext context, CUstream stream, CUevent event,
                uint64_t start_ns);
void trace_memory(const struct memory *memory, bool is_release);
void trace_mempool(CUmemoryPool pool, unsigned operation, uint64_t keep_bytes);
void trace_init_finished(void);
void trace_driver_gone(void);

/* sim_driver_exec.c */
int exec_id(void *exec, uint32_t *id);

#endif
