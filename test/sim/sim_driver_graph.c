/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

/* Graphs as they are built: nodes, dependencies, copies of graphs. */

enum { GRAPH_COUNT_MAX = 1 << 16, NODE_COUNT_MAX = 1 << 20 };

struct sim_pool pool_graphs = SIM_POOL(struct CUgraph_st, GRAPH_COUNT_MAX);
struct sim_pool pool_nodes = SIM_POOL(struct CUgraphNode_st, NODE_COUNT_MAX);

CUgraph graph_check(CUgraph graph)
{
    return sim_pool_has(&pool_graphs, graph) ? graph : NULL;
}

static CUgraphNode node_check(CUgraphNode node)
{
    return sim_pool_has(&pool_nodes, node) ? node : NULL;
}

CUgraph graph_make(void)
{
    CUgraph graph = sim_pool_get(&pool_graphs);
    if (graph) {
        graph->id = driver_serial();
        pthread_mutex_init(&graph->lock, NULL);
    }
    return graph;
}

static void node_discard(CUgraphNode node)
{
    if (node->type == CU_GRAPH_NODE_TYPE_GRAPH && graph_check(node->params.child))
        graph_discard(node->params.child);
    free(node->deps);
    node->deps = NULL;
    sim_pool_put(&pool_nodes, node);
}

void graph_discard(CUgraph graph)
{
    for (unsigned i = 0; i < graph->node_count; i++)
        node_discard(graph->nodes[i]);
    free(graph->nodes);
    graph->nodes = NULL;
    sim_pool_put(&pool_graphs, graph);
}

static CUresult deps_add(CUgraphNode node, const CUgraphNode *deps, size_t count)
{
    if (count == 0)
        return CUDA_SUCCESS;
    CUgraphNode *grown = realloc(node->deps, (node->dep_count + count) * sizeof *grown);
    if (!grown)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->deps = grown;
    for (size_t i = 0; i < count; i++)
        node->deps[node->dep_count++] = deps[i];
    return CUDA_SUCCESS;
}

CUresult graph_add(CUgraph graph, CUgraphNodeType type, const struct graph_node_params *params,
                   const CUgraphNode *deps, size_t dep_count, CUgraphNode *out)
{
    if (!graph_check(graph) || (dep_count && !deps) || !out)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < dep_count; i++)
        if (!node_check(deps[i]) || deps[i]->graph != graph)
            return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode node = sim_pool_get(&pool_nodes);
    if (!node)
        return CUDA_ERROR_OUT_OF_MEMORY;
    node->graph = graph;
    node->type = type;
    node->params = *params;
    CUresult result = deps_add(node, deps, dep_count);
    pthread_mutex_lock(&graph->lock);
    if (graph->node_count == graph->node_limit) {
        unsigned limit = graph->node_limit ? graph->node_limit * 2 : 16;
        CUgraphNode *nodes = realloc(graph->nodes, limit * sizeof *nodes);
        if (nodes) {
            graph->nodes = nodes;
            graph->node_limit = limit;
        }
    }
    if (graph->node_count < graph->node_limit) {
        node->id = graph->next_node_id++;
        graph->nodes[graph->node_count++] = node;
    } else {
        result = CUDA_ERROR_OUT_OF_MEMORY;
    }
    pthread_mutex_unlock(&graph->lock);
    *out = node;
    return result;
}

CUresult graph_copy(CUgraph *clone, CUgraph graph)
{
    if (!clone || !graph_check(graph))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph copy = graph_make();
    CUresult result = copy ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    for (unsigned i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        CUgraphNode from = graph->nodes[i];
        struct graph_node_params params = from->params;
        if (from->type == CU_GRAPH_NODE_TYPE_GRAPH)
            result = graph_copy(&params.child, from->params.child);
        if (result == CUDA_SUCCESS)
            result = graph_add(copy, from->type, &params, NULL, 0, &from->clone);
        if (result == CUDA_SUCCESS)
            from->clone->id = from->id;
    }
    for (unsigned i = 0; i < graph->node_count && result == CUDA_SUCCESS; i++) {
        CUgraphNode from = graph->nodes[i];
        for (unsigned j = 0; j < from->dep_count && result == CUDA_SUCCESS; j++)
            result = deps_add(from->clone, &from->deps[j]->clone, 1);
    }
    *clone = copy;
    return result;
}

static CUresult graph_create(CUgraph *graph, unsigned flags)
{
    if (!graph || flags)
        return CUDA_ERROR_INVALID_VALUE;
    *graph = graph_make();
    return *graph ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult graph_destroy(CUgraph graph)
{
    if (!graph_check(graph))
        return CUDA_ERROR_INVALID_VALUE;
    graph_discard(graph);
    return CUDA_SUCCESS;
}

static CUresult kernel_params(const CUDA_KERNEL_NODE_PARAMS *from, struct graph_node_params *to)
{
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    *to = (struct graph_node_params){
        .function = from->func ? from->func : (CUfunction)from->kern,
        .grid = {from->gridDimX, from->gridDimY, from->gridDimZ},
        .block = {from->blockDimX, from->blockDimY, from->blockDimZ},
        .shared = from->sharedMemBytes,
    };
    return launch_check(to->function, to->grid, to->block, to->shared);
}

static CUresult add_kernel(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                           const CUDA_KERNEL_NODE_PARAMS *from)
{
    struct graph_node_params params;
    CUresult result = kernel_params(from, &params);
    if (result != CUDA_SUCCESS)
        return result;
    return graph_add(graph, CU_GRAPH_NODE_TYPE_KERNEL, &params, deps, count, node);
}

static CUresult add_copy(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                         const CUDA_MEMCPY3D *copy)
{
    CUresult result = copy_shape_check(copy);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_node_params params = {.copy = *copy};
    return graph_add(graph, CU_GRAPH_NODE_TYPE_MEMCPY, &params, deps, count, node);
}

static CUresult add_fill(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                         const CUDA_MEMSET_NODE_PARAMS *set)
{
    if (!set || (set->elementSize != 1 && set->elementSize != 2 && set->elementSize != 4))
        return CUDA_ERROR_INVALID_VALUE;
    struct graph_node_params params = {
        .fill = {set->dst, set->pitch, set->width, set->height, set->value, set->elementSize}};
    return graph_add(graph, CU_GRAPH_NODE_TYPE_MEMSET, &params, deps, count, node);
}

static CUresult add_other(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                          CUgraphNodeType type, struct graph_node_params params)
{
    CUresult result = CUDA_SUCCESS;
    if (type == CU_GRAPH_NODE_TYPE_GRAPH)
        result = graph_copy(&params.child, params.child);
    if ((type == CU_GRAPH_NODE_TYPE_EVENT_RECORD || type == CU_GRAPH_NODE_TYPE_WAIT_EVENT) &&
        !sim_pool_has(&pool_events, params.event))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result != CUDA_SUCCESS)
        return result;
    return graph_add(graph, type, &params, deps, count, node);
}

static CUresult add_dependencies(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
                                 size_t count)
{
    CUresult result = graph_check(graph) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && result == CUDA_SUCCESS; i++) {
        if (!node_check(from[i]) || !node_check(to[i]) || from[i]->graph != graph ||
            to[i]->graph != graph || from[i] == to[i])
            return CUDA_ERROR_INVALID_VALUE;
        result = deps_add(to[i], &from[i], 1);
    }
    return result;
}

static CUresult list_nodes(CUgraph graph, CUgraphNode *nodes, size_t *count, bool roots)
{
    size_t used = 0;
    if (!graph_check(graph) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < graph->node_count; i++) {
        if (roots && graph->nodes[i]->dep_count)
            continue;
        if (nodes && used < *count)
            nodes[used] = graph->nodes[i];
        used++;
    }
    *count = used;
    return CUDA_SUCCESS;
}

static CUresult node_type(CUgraphNode node, CUgraphNodeType *type)
{
    if (!node_check(node) || !type)
        return CUDA_ERROR_INVALID_VALUE;
    *type = node->type;
    return CUDA_SUCCESS;
}

/* Memory of a graph is there from the node on, and stays, as what a capture gets does. */
static CUresult add_memory(CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count,
                           CUDA_MEM_ALLOC_NODE_PARAMS *from)
{
    struct sim_device *device;
    uint64_t address = 0;
    if (!from || from->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = driver_device(from->poolProps.location.id, &device);
    if (result == CUDA_SUCCESS)
        result = memory_allocate(MEMORY_ASYNC, from->bytesize, 0, device->default_pool, &address);
    if (result != CUDA_SUCCESS)
        return result;
    struct graph_node_params params = {.address = address, .bytes = from->bytesize};
    from->dptr = address;
    return graph_add(graph, CU_GRAPH_NODE_TYPE_MEM_ALLOC, &params, deps, count, node);
}

static CUresult node_remove(CUgraphNode node)
{
    if (!node_check(node))
        return CUDA_ERROR_INVALID_VALUE;
    CUgraph graph = node->graph;
    unsigned kept = 0;
    for (unsigned i = 0; i < graph->node_count; i++) {
        CUgraphNode at = graph->nodes[i];
        unsigned deps = 0;
        for (unsigned j = 0; j < at->dep_count; j++)
            if (at->deps[j] != node)
                at->deps[deps++] = at->deps[j];
        at->dep_count = deps;
        if (at != node)
            graph->nodes[kept++] = at;
    }
    graph->node_count = kept;
    node_discard(node);
    return CUDA_SUCCESS;
}

static CUresult kernel_get(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
    if (!node_check(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL || !out)
        return CUDA_ERROR_INVALID_VALUE;
    const struct graph_node_params *params = &node->params;
    *out = (CUDA_KERNEL_NODE_PARAMS){
        .func = params->function,
        .gridDimX = params->grid[0],
        .gridDimY = params->grid[1],
        .gridDimZ = params->grid[2],
        .blockDimX = params->block[0],
        .blockDimY = params->block[1],
        .blockDimZ = params->block[2],
        .sharedMemBytes = params->shared,
    };
    return CUDA_SUCCESS;
}

static CUresult kernel_set(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *from)
{
    if (!node_check(node) || node->type != CU_GRAPH_NODE_TYPE_KERNEL)
        return CUDA_ERROR_INVALID_VALUE;
    return kernel_params(from, &node->params);
}

#define DEPS CUgraphNode *node, CUgraph graph, const CUgraphNode *deps, size_t count

DRV(cuGraphCreate, (CUgraph * graph, unsigned flags), graph_create(graph, flags),
    A_OUT("graph", graph))
DRV(cuGraphDestroy, (CUgraph graph), graph_destroy(graph), A_X(graph))
DRV(cuGraphClone, (CUgraph * clone, CUgraph graph), graph_copy(clone, graph), A_X(graph))
DRV(cuGraphAddKernelNode_v2, (DEPS, const CUDA_KERNEL_NODE_PARAMS *params),
    add_kernel(node, graph, deps, count, params), A_X(graph))
DRV(cuGraphAddMemcpyNode, (DEPS, const CUDA_MEMCPY3D *copy, CUcontext context),
    add_copy(node, graph, deps, count, copy), A_X(graph))
DRV(cuGraphAddMemsetNode, (DEPS, const CUDA_MEMSET_NODE_PARAMS *params, CUcontext context),
    add_fill(node, graph, deps, count, params), A_X(graph))
DRV(cuGraphAddHostNode, (DEPS, const CUDA_HOST_NODE_PARAMS *params),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_HOST,
              (struct graph_node_params){.host = *params}),
    A_X(graph))
DRV(cuGraphAddChildGraphNode, (DEPS, CUgraph child),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_GRAPH,
              (struct graph_node_params){.child = child}),
    A_X(graph))
DRV(cuGraphAddEmptyNode, (DEPS),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_EMPTY, (struct graph_node_params){0}),
    A_X(graph))
DRV(cuGraphAddEventRecordNode, (DEPS, CUevent event),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_EVENT_RECORD,
              (struct graph_node_params){.event = event}),
    A_X(graph), A_X(event))
DRV(cuGraphAddEventWaitNode, (DEPS, CUevent event),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
              (struct graph_node_params){.event = event}),
    A_X(graph), A_X(event))
DRV(cuGraphAddMemAllocNode, (DEPS, CUDA_MEM_ALLOC_NODE_PARAMS *params),
    add_memory(node, graph, deps, count, params), A_X(graph),
    A_OUT("ptr", params ? &params->dptr : NULL), A_KU("bytes", params ? params->bytesize : 0),
    A_KU("device", params ? params->poolProps.location.id : 0))
DRV(cuGraphAddMemFreeNode, (DEPS, CUdeviceptr ptr),
    add_other(node, graph, deps, count, CU_GRAPH_NODE_TYPE_MEM_FREE,
              (struct graph_node_params){.address = ptr}),
    A_X(graph), A_X(ptr))
DRV(cuGraphAddDependencies,
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
    add_dependencies(graph, from, to, count), A_X(graph))
DRV(cuGraphAddDependencies_v2,
    (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *edges,
     size_t count),
    add_dependencies(graph, from, to, count), A_X(graph))
DRV(cuGraphGetNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
    list_nodes(graph, nodes, count, false), A_X(graph))
DRV(cuGraphGetRootNodes, (CUgraph graph, CUgraphNode *nodes, size_t *count),
    list_nodes(graph, nodes, count, true), A_X(graph))
DRV(cuGraphNodeGetType, (CUgraphNode node, CUgraphNodeType *type), node_type(node, type))
DRV(cuGraphDestroyNode, (CUgraphNode node), node_remove(node), A_X(node))
DRV(cuGraphKernelNodeGetParams_v2, (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params),
    kernel_get(node, params), A_X(node))
DRV(cuGraphKernelNodeSetParams_v2, (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
    kernel_set(node, params), A_X(node))
