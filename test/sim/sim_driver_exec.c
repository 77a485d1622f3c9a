/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

/* Instantiated graphs: nodes in an order that respects their dependencies, replayed in time. */

enum { EXEC_COUNT_MAX = 1 << 16, GRAPH_START_NS = 500 };

struct exec_node {
    CUgraphNodeType type;
    struct graph_node_params params;
    unsigned id; /* of the node in the graph it came from */
    unsigned *deps;
    unsigned dep_count;
    uint64_t end_ns; /* of the launch being made; under the exec's lock */
};

struct CUgraphExec_st {
    struct sim_handle handle;
    uint64_t id, graph_id;
    CUgraph source; /* a copy of its own */
    cuuint64_t flags;
    pthread_mutex_t lock;
    struct exec_node *nodes;
    unsigned node_count;
};

struct sim_pool pool_execs = SIM_POOL(struct CUgraphExec_st, EXEC_COUNT_MAX);

static CUgraphExec exec_check(CUgraphExec exec)
{
    return sim_pool_has(&pool_execs, exec) ? exec : NULL;
}

int exec_id(void *exec, uint32_t *id)
{
    if (!exec_check(exec))
        return CUDA_ERROR_INVALID_VALUE;
    *id = (uint32_t)((CUgraphExec)exec)->id;
    return CUDA_SUCCESS;
}

static unsigned graph_size(CUgraph graph)
{
    unsigned count = 0;
    for (unsigned i = 0; i < graph->node_count; i++)
        count += graph->nodes[i]->type == CU_GRAPH_NODE_TYPE_GRAPH
                     ? graph_size(graph->nodes[i]->params.child) + 1
                     : 1;
    return count;
}

struct flattening {
    struct exec_node *nodes;
    unsigned used;
};

static bool node_place(struct flattening *flat, CUgraphNode node, unsigned *index, unsigned *placed,
                       const unsigned *base_deps, unsigned base_count);

/* Appends the nodes of GRAPH; each root also depends on the BASE nodes. False for a cycle. */
static bool graph_flatten(struct flattening *flat, CUgraph graph, const unsigned *base,
                          unsigned base_count)
{
    unsigned count = graph->node_count, done = 0;
    unsigned *index = calloc(count ? count : 1, sizeof *index); /* place + 1 */
    bool progress = true;
    if (!index)
        return false;
    while (done < count && progress) {
        progress = false;
        for (unsigned i = 0; i < count; i++)
            if (!index[i] &&
                node_place(flat, graph->nodes[i], index, &index[i], base, base_count)) {
                done++;
                progress = true;
            }
    }
    free(index);
    return done == count;
}

static unsigned place_of_node(CUgraph graph, CUgraphNode node, const unsigned *index)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        if (graph->nodes[i] == node)
            return index[i];
    return 0;
}

static bool node_place(struct flattening *flat, CUgraphNode node, unsigned *index, unsigned *placed,
                       const unsigned *base, unsigned base_count)
{
    unsigned count = node->dep_count ? node->dep_count : base_count;
    unsigned *deps = malloc((count + 1) * sizeof *deps);
    if (!deps)
        return false;
    for (unsigned i = 0; i < count; i++) {
        unsigned place =
            node->dep_count ? place_of_node(node->graph, node->deps[i], index) : base[i] + 1;
        if (place == 0) {
            free(deps);
            return false;
        }
        deps[i] = place - 1;
    }
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH) {
        /* An empty node after the child's nodes stands for the whole child. */
        unsigned first = flat->used;
        if (!graph_flatten(flat, node->params.child, deps, count)) {
            free(deps);
            return false;
        }
        unsigned inner = flat->used - first;
        free(deps);
        deps = malloc((inner + 1) * sizeof *deps);
        for (count = 0; deps && count < inner; count++)
            deps[count] = first + count;
    }
    flat->nodes[flat->used] = (struct exec_node){
        .type = node->type == CU_GRAPH_NODE_TYPE_GRAPH ? CU_GRAPH_NODE_TYPE_EMPTY : node->type,
        .params = node->params,
        .id = node->id,
        .deps = deps,
        .dep_count = count,
    };
    *placed = ++flat->used;
    return true;
}

static void exec_nodes_free(struct exec_node *nodes, unsigned count)
{
    for (unsigned i = 0; nodes && i < count; i++)
        free(nodes[i].deps);
    free(nodes);
}

static CUresult exec_create(CUgraphExec *out, CUgraph graph, cuuint64_t flags)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!out || !graph_check(graph) || flags > 15)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned size = graph_size(graph);
    struct flattening flat = {calloc(size + 1, sizeof *flat.nodes), 0};
    CUgraphExec exec = sim_pool_get(&pool_execs);
    if (!flat.nodes || !exec || !graph_flatten(&flat, graph, NULL, 0)) {
        exec_nodes_free(flat.nodes, flat.used);
        if (exec)
            sim_pool_put(&pool_execs, exec);
        return CUDA_ERROR_INVALID_VALUE;
    }
    exec->id = driver_serial();
    exec->graph_id = graph->id;
    exec->flags = flags;
    exec->nodes = flat.nodes;
    graph_copy(&exec->source, graph);
    exec->node_count = flat.used;
    pthread_mutex_init(&exec->lock, NULL);
    *out = exec;
    return CUDA_SUCCESS;
}

static CUresult exec_destroy(CUgraphExec exec)
{
    if (!exec_check(exec))
        return CUDA_ERROR_INVALID_VALUE;
    exec_nodes_free(exec->nodes, exec->node_count);
    exec->nodes = NULL;
    if (graph_check(exec->source))
        graph_discard(exec->source);
    sim_pool_put(&pool_execs, exec);
    return CUDA_SUCCESS;
}

/* Bytes move in the order of the launch; behind a host node they wait for it. */
static void data_copy(void *shape)
{
    copy_shape_now(shape);
}

static void data_fill(void *fill)
{
    fill_now(fill);
}

static void data_apply(CUstream stream, void (*run)(void *), const void *params, size_t bytes)
{
    void *own = malloc(bytes);
    if (!own)
        return;
    memcpy(own, params, bytes);
    if (host_op_done(__atomic_load_n(&stream->last_op, __ATOMIC_ACQUIRE))) {
        run(own);
        free(own);
    } else {
        host_op_enqueue(stream, (struct host_action){run, NULL, own, true});
    }
}

static void node_log(CUstream stream, CUgraphExec exec, const struct exec_node *node,
                     const struct work *work)
{
    const struct graph_node_params *params = &node->params;
    struct sim_arg args[8] = {A_KU("graph", exec->graph_id), A_KU("exec", exec->id),
                              A_KU("node", node->id)};
    unsigned count = 3;
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        args[count++] = (struct sim_arg)A_KS("name", function_name(params->function));
        args[count++] =
            (struct sim_arg)A_3("grid", params->grid[0], params->grid[1], params->grid[2]);
        args[count++] =
            (struct sim_arg)A_3("block", params->block[0], params->block[1], params->block[2]);
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        const CUDA_MEMCPY3D *copy = &params->copy;
        args[count++] =
            (struct sim_arg)A_KU("bytes", copy->WidthInBytes * copy->Height * copy->Depth);
        args[count++] = (struct sim_arg)A_KS("kind", copy_kind(copy));
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        args[count++] = (struct sim_arg)A_KU("bytes", params->fill.width * params->fill.height *
                                                          params->fill.element);
    }
    work_log(stream, work, args, count);
    const struct graph_place place = {exec->id, node->id};
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL)
        trace_kernel(stream, work, params, &place);
    else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY)
        trace_copy(stream, work, &params->copy, true, &place);
    else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET)
        trace_fill(stream, work, &params->fill, true, &place);
}

static struct work node_work(const struct exec_node *node)
{
    const struct graph_node_params *params = &node->params;
    struct work work = {0};
    if (node->type == CU_GRAPH_NODE_TYPE_KERNEL) {
        work.what = "kernel";
        work.duration_ns =
            function_check(params->function) ? kernel_duration(params->function, params->grid) : 0;
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        work.what = "memcpy";
        work.duration_ns =
            copy_duration(params->copy.WidthInBytes * params->copy.Height * params->copy.Depth,
                          copy_is_pageable(&params->copy));
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        work.what = "memset";
        work.duration_ns = copy_duration(params->fill.width * params->fill.height / 4, false);
    }
    return work;
}

static void node_run(CUgraphExec exec, struct exec_node *node, CUstream stream, uint64_t start_ns)
{
    const struct graph_node_params *params = &node->params;
    struct work work = node_work(node);
    work.queued_ns = work.start_ns = start_ns;
    for (unsigned i = 0; i < node->dep_count; i++)
        if (exec->nodes[node->deps[i]].end_ns > work.start_ns)
            work.start_ns = exec->nodes[node->deps[i]].end_ns;
    if (!sim_config.timeline)
        work.duration_ns = 0;
    work.end_ns = node->end_ns = work.start_ns + work.duration_ns;
    meter_work(stream, work.start_ns, work.end_ns);
    if (node->type == CU_GRAPH_NODE_TYPE_MEMCPY) {
        data_apply(stream, data_copy, &params->copy, sizeof params->copy);
    } else if (node->type == CU_GRAPH_NODE_TYPE_MEMSET) {
        data_apply(stream, data_fill, &params->fill, sizeof params->fill);
    } else if (node->type == CU_GRAPH_NODE_TYPE_HOST) {
        stream_advance(stream, work.start_ns);
        host_op_enqueue(stream,
                        (struct host_action){params->host.fn, NULL, params->host.userData, false});
    } else if (node->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD &&
               sim_pool_has(&pool_events, params->event)) {
        pthread_mutex_lock(&params->event->lock);
        params->event->recorded = true;
        params->event->time_ns = work.end_ns;
        params->event->capture = NULL;
        pthread_mutex_unlock(&params->event->lock);
    }
    if (work.what && SIM_UNLIKELY(work_wanted()))
        node_log(stream, exec, node, &work);
}

static CUresult exec_launch(CUgraphExec exec, CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    if (!exec_check(exec))
        return CUDA_ERROR_INVALID_HANDLE;
    if (stream->capture) {
        /* A graph launched into a capture becomes a child graph. */
        struct graph_node_params params = {0};
        result = graph_copy(&params.child, exec->source);
        if (result != CUDA_SUCCESS)
            return result;
        if (capture_take(stream, CU_GRAPH_NODE_TYPE_GRAPH, &params, &result))
            return result;
    } else if (capture_take(stream, CU_GRAPH_NODE_TYPE_GRAPH, NULL, &result)) {
        return result;
    }
    pthread_mutex_lock(&exec->lock);
    uint64_t now_ns = sim_config.timeline || work_wanted() ? sim_now_ns() : 0;
    uint64_t start_ns =
        sim_config.timeline ? stream_start(stream, now_ns) + GRAPH_START_NS : now_ns;
    uint64_t end_ns = start_ns;
    for (unsigned i = 0; i < exec->node_count; i++) {
        node_run(exec, &exec->nodes[i], stream, start_ns);
        if (exec->nodes[i].end_ns > end_ns)
            end_ns = exec->nodes[i].end_ns;
    }
    if (sim_config.timeline)
        stream_advance(stream, end_ns);
    if (SIM_UNLIKELY(work_wanted())) {
        struct work work = {
            .what = "graph", .queued_ns = now_ns, .start_ns = start_ns, .end_ns = end_ns};
        const struct sim_arg args[] = {A_KU("graph", exec->graph_id), A_KU("exec", exec->id),
                                       A_KU("nodes", exec->node_count)};
        work_log(stream, &work, args, 3);
        trace_graph(stream, &work, exec->id);
    }
    pthread_mutex_unlock(&exec->lock);
    return CUDA_SUCCESS;
}

static CUresult exec_upload(CUgraphExec exec, CUstream handle, int pt)
{
    CUstream stream;
    CUresult result = stream_resolve(handle, pt, &stream);
    if (result != CUDA_SUCCESS)
        return result;
    return exec_check(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult exec_params(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = exec_create(exec, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out =
        result == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return result;
}

static CUresult exec_flags(CUgraphExec exec, cuuint64_t *flags)
{
    if (!exec_check(exec) || !flags)
        return CUDA_ERROR_INVALID_VALUE;
    *flags = exec->flags;
    return CUDA_SUCCESS;
}

/* The same number and types of nodes in the same order: their parameters are taken over. */
static CUresult exec_update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResult *why)
{
    *why = CU_GRAPH_EXEC_UPDATE_ERROR;
    if (!exec_check(exec) || !graph_check(graph))
        return CUDA_ERROR_INVALID_VALUE;
    struct flattening flat = {calloc(graph_size(graph) + 1, sizeof *flat.nodes), 0};
    bool same = flat.nodes && graph_flatten(&flat, graph, NULL, 0) && flat.used == exec->node_count;
    pthread_mutex_lock(&exec->lock);
    for (unsigned i = 0; same && i < flat.used; i++)
        same = flat.nodes[i].type == exec->nodes[i].type;
    for (unsigned i = 0; same && i < flat.used; i++)
        exec->nodes[i].params = flat.nodes[i].params;
    pthread_mutex_unlock(&exec->lock);
    exec_nodes_free(flat.nodes, flat.used);
    *why = same ? CU_GRAPH_EXEC_UPDATE_SUCCESS : CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    return same ? CUDA_SUCCESS : CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
}

static CUresult exec_update_info(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    CUgraphExecUpdateResult why;
    CUresult result = exec_update(exec, graph, &why);
    if (info)
        *info = (CUgraphExecUpdateResultInfo){why, NULL, NULL};
    return result;
}

static CUresult exec_update_old(CUgraphExec exec, CUgraph graph, CUgraphNode *node,
                                CUgraphExecUpdateResult *out)
{
    CUgraphExecUpdateResult why;
    CUresult result = exec_update(exec, graph, &why);
    if (node)
        *node = NULL;
    if (out)
        *out = why;
    return result;
}

static CUresult exec_kernel_set(CUgraphExec exec, CUgraphNode node,
                                const CUDA_KERNEL_NODE_PARAMS *from)
{
    if (!exec_check(exec) || !sim_pool_has(&pool_nodes, node) || !from)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < exec->node_count; i++)
        if (exec->nodes[i].id == node->id && exec->nodes[i].type == CU_GRAPH_NODE_TYPE_KERNEL) {
            struct graph_node_params *params = &exec->nodes[i].params;
            params->function = from->func ? from->func : (CUfunction)from->kern;
            memcpy(params->grid, &from->gridDimX, sizeof params->grid);
            memcpy(params->block, &from->blockDimX, sizeof params->block);
            params->shared = from->sharedMemBytes;
            return launch_check(params->function, params->grid, params->block, params->shared);
        }
    return CUDA_ERROR_INVALID_VALUE;
}

DRV(cuGraphInstantiate,
    (CUgraphExec * exec, CUgraph graph, CUgraphNode *node, char *buffer, size_t bytes),
    exec_create(exec, graph, 0), A_OUT("exec", exec), A_X(graph))
DRV(cuGraphInstantiate_v2,
    (CUgraphExec * exec, CUgraph graph, CUgraphNode *node, char *buffer, size_t bytes),
    exec_create(exec, graph, 0), A_OUT("exec", exec), A_X(graph))
DRV(cuGraphInstantiateWithFlags, (CUgraphExec * exec, CUgraph graph, unsigned long long flags),
    exec_create(exec, graph, flags), A_OUT("exec", exec), A_X(graph), A_U(flags))
DRV2(cuGraphInstantiateWithParams, _ptsz,
     (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
     exec_params(exec, graph, params), A_OUT("exec", exec), A_X(graph))
DRV(cuGraphExecGetFlags, (CUgraphExec exec, cuuint64_t *flags), exec_flags(exec, flags), A_X(exec))
DRV(cuGraphExecUpdate,
    (CUgraphExec exec, CUgraph graph, CUgraphNode *node, CUgraphExecUpdateResult *why),
    exec_update_old(exec, graph, node, why), A_X(exec), A_X(graph))
DRV(cuGraphExecUpdate_v2, (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info),
    exec_update_info(exec, graph, info), A_X(exec), A_X(graph))
DRV(cuGraphExecKernelNodeSetParams_v2,
    (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
    exec_kernel_set(exec, node, params), A_X(exec), A_X(node))
DRV2(cuGraphUpload, _ptsz, (CUgraphExec exec, CUstream stream), exec_upload(exec, stream, pt),
     A_X(exec), A_X(stream))
DRV2(cuGraphLaunch, _ptsz, (CUgraphExec exec, CUstream stream), exec_launch(exec, stream, pt),
     A_X(exec), A_X(stream))
DRV(cuGraphExecDestroy, (CUgraphExec exec), exec_destroy(exec), A_X(exec))
