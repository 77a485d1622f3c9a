/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <string.h>

/* Capture and graphs. */

RT2(cudaStreamBeginCapture, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
    D2(cuStreamBeginCapture_v2, cuStreamBeginCapture, 10010, 10010)(stream,
                                                                    (CUstreamCaptureMode)mode),
    A_X(stream), A_U(mode))
RT2(cudaStreamBeginCaptureToGraph, _ptsz,
    (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *deps,
     const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
    D2(cuStreamBeginCaptureToGraph, cuStreamBeginCaptureToGraph, 12030,
       12030)(stream, graph, deps, edges, count, (CUstreamCaptureMode)mode),
    A_X(stream), A_X(graph), A_U(mode))
RT2(cudaStreamEndCapture, _ptsz, (cudaStream_t stream, cudaGraph_t *graph),
    D2(cuStreamEndCapture, cuStreamEndCapture, 10000, 10000)(stream, graph), A_X(stream),
    A_OUT("graph", graph))
RT2(cudaStreamIsCapturing, _ptsz, (cudaStream_t stream, enum cudaStreamCaptureStatus *status),
    D2(cuStreamIsCapturing, cuStreamIsCapturing, 10000, 10000)(stream,
                                                               (CUstreamCaptureStatus *)status),
    A_X(stream))
RT(cudaThreadExchangeStreamCaptureMode, (enum cudaStreamCaptureMode * mode),
   D(cuThreadExchangeStreamCaptureMode, cuThreadExchangeStreamCaptureMode,
     10010)((CUstreamCaptureMode *)mode))

#define INFO_V3                                                                                    \
    (cudaStream_t stream, enum cudaStreamCaptureStatus * status, unsigned long long *id,           \
     cudaGraph_t *graph, const cudaGraphNode_t **deps, const cudaGraphEdgeData **edges,            \
     size_t *count)
#define CALL_INFO_V3                                                                               \
    D2(cuStreamGetCaptureInfo_v3, cuStreamGetCaptureInfo, 12030, 12030)                            \
    (stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, deps, edges, count)

#if SIM_CUDART_MAJOR == 12
RT2(cudaStreamGetCaptureInfo, _ptsz,
    (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id),
    D2(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo, 10010,
       10010)(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id),
    A_X(stream))
RT2(cudaStreamGetCaptureInfo_v2, _ptsz,
    (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
     cudaGraph_t *graph, const cudaGraphNode_t **deps, size_t *count),
    D2(cuStreamGetCaptureInfo_v2, cuStreamGetCaptureInfo, 11030,
       11030)(stream, (CUstreamCaptureStatus *)status, (cuuint64_t *)id, graph, deps, count),
    A_X(stream))
RT2(cudaStreamGetCaptureInfo_v3, _ptsz, INFO_V3, CALL_INFO_V3, A_X(stream))
RT2(cudaStreamUpdateCaptureDependencies, _ptsz,
    (cudaStream_t stream, cudaGraphNode_t *deps, size_t count, unsigned flags),
    D2(cuStreamUpdateCaptureDependencies, cuStreamUpdateCaptureDependencies, 11030,
       11030)(stream, deps, count, flags),
    A_X(stream))
#define GRAPH_EDGES
#else
RT2(cudaStreamGetCaptureInfo, _ptsz, INFO_V3, CALL_INFO_V3, A_X(stream))
RT2(cudaStreamUpdateCaptureDependencies, _ptsz,
    (cudaStream_t stream, cudaGraphNode_t *deps, const cudaGraphEdgeData *edges, size_t count,
     unsigned flags),
    D2(cuStreamUpdateCaptureDependencies_v2, cuStreamUpdateCaptureDependencies, 12030,
       12030)(stream, deps, edges, count, flags),
    A_X(stream))
#define GRAPH_EDGES const cudaGraphEdgeData *edges,
#endif

static CUresult kernel_params(const struct cudaKernelNodeParams *from, CUDA_KERNEL_NODE_PARAMS *to)
{
    CUfunction function;
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    cudaError_t error = runtime_function(from->func, &function);
    if (error != cudaSuccess)
        return (CUresult)error;
    *to = (CUDA_KERNEL_NODE_PARAMS){
        .func = function,
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = from->sharedMemBytes,
        .kernelParams = from->kernelParams,
        .extra = from->extra,
    };
    return CUDA_SUCCESS;
}

#define DEPS cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *deps, size_t count
#define CONTEXT(call)                                                                              \
    ({                                                                                             \
        CUcontext context = NULL;                                                                  \
        CUresult result = D(cuCtxGetCurrent, cuCtxGetCurrent, 4000)(&context);                     \
        result == CUDA_SUCCESS ? (call) : result;                                                  \
    })

static CUresult add_kernel(DEPS, const struct cudaKernelNodeParams *from)
{
    CUDA_KERNEL_NODE_PARAMS params;
    CUresult result = kernel_params(from, &params);
    if (result != CUDA_SUCCESS)
        return result;
    return D(cuGraphAddKernelNode_v2, cuGraphAddKernelNode, 12000)(node, graph, deps, count,
                                                                   &params);
}

static CUresult add_copy(DEPS, const struct cudaMemcpy3DParms *from)
{
    CUDA_MEMCPY3D copy;
    cudaError_t error = runtime_shape(from, &copy);
    if (error != cudaSuccess)
        return (CUresult)error;
    return CONTEXT(D(cuGraphAddMemcpyNode, cuGraphAddMemcpyNode, 10000)(node, graph, deps, count,
                                                                        &copy, context));
}

static CUresult add_copy_1d(DEPS, void *dst, const void *src, size_t bytes,
                            enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms from = {
        .srcPtr = {(void *)(uintptr_t)src, bytes, bytes, 1},
        .dstPtr = {dst, bytes, bytes, 1},
        .extent = {bytes, 1, 1},
        .kind = kind,
    };
    return add_copy(node, graph, deps, count, &from);
}

static CUresult add_fill(DEPS, const struct cudaMemsetParams *from)
{
    if (!from)
        return CUDA_ERROR_INVALID_VALUE;
    CUDA_MEMSET_NODE_PARAMS params = {(uintptr_t)from->dst, from->pitch, from->value,
                                      from->elementSize,    from->width, from->height};
    return CONTEXT(D(cuGraphAddMemsetNode, cuGraphAddMemsetNode, 10000)(node, graph, deps, count,
                                                                        &params, context));
}

static CUresult exec_kernel(cudaGraphExec_t exec, cudaGraphNode_t node,
                            const struct cudaKernelNodeParams *from)
{
    CUDA_KERNEL_NODE_PARAMS params;
    CUresult result = kernel_params(from, &params);
    if (result != CUDA_SUCCESS)
        return result;
    return D(cuGraphExecKernelNodeSetParams_v2, cuGraphExecKernelNodeSetParams, 12000)(exec, node,
                                                                                       &params);
}

RT(cudaGraphCreate, (cudaGraph_t * graph, unsigned flags),
   D(cuGraphCreate, cuGraphCreate, 10000)(graph, flags), A_OUT("graph", graph))
RT(cudaGraphDestroy, (cudaGraph_t graph), D(cuGraphDestroy, cuGraphDestroy, 10000)(graph),
   A_X(graph))
RT(cudaGraphClone, (cudaGraph_t * clone, cudaGraph_t graph),
   D(cuGraphClone, cuGraphClone, 10000)(clone, graph), A_X(graph))
RT(cudaGraphAddKernelNode, (DEPS, const struct cudaKernelNodeParams *params),
   add_kernel(node, graph, deps, count, params), A_X(graph))
RT(cudaGraphAddMemcpyNode, (DEPS, const struct cudaMemcpy3DParms *params),
   add_copy(node, graph, deps, count, params), A_X(graph))
RT(cudaGraphAddMemcpyNode1D,
   (DEPS, void *dst, const void *src, size_t bytes, enum cudaMemcpyKind kind),
   add_copy_1d(node, graph, deps, count, dst, src, bytes, kind), A_X(graph), A_U(bytes))
RT(cudaGraphAddMemsetNode, (DEPS, const struct cudaMemsetParams *params),
   add_fill(node, graph, deps, count, params), A_X(graph))
RT(cudaGraphAddHostNode, (DEPS, const struct cudaHostNodeParams *params),
   D(cuGraphAddHostNode, cuGraphAddHostNode, 10000)(node, graph, deps, count,
                                                    (const CUDA_HOST_NODE_PARAMS *)params),
   A_X(graph))
RT(cudaGraphAddChildGraphNode, (DEPS, cudaGraph_t child),
   D(cuGraphAddChildGraphNode, cuGraphAddChildGraphNode, 10000)(node, graph, deps, count, child),
   A_X(graph))
RT(cudaGraphAddEmptyNode, (DEPS),
   D(cuGraphAddEmptyNode, cuGraphAddEmptyNode, 10000)(node, graph, deps, count), A_X(graph))
RT(cudaGraphAddMemAllocNode, (DEPS, struct cudaMemAllocNodeParams *params),
   D(cuGraphAddMemAllocNode, cuGraphAddMemAllocNode, 11040)(node, graph, deps, count,
                                                            (CUDA_MEM_ALLOC_NODE_PARAMS *)params),
   A_X(graph), A_OUT("ptr", params ? &params->dptr : NULL),
   A_KU("bytes", params ? params->bytesize : 0),
   A_KU("device", params ? params->poolProps.location.id : 0))
RT(cudaGraphAddMemFreeNode, (DEPS, void *ptr),
   D(cuGraphAddMemFreeNode, cuGraphAddMemFreeNode, 11040)(node, graph, deps, count,
                                                          (CUdeviceptr)(uintptr_t)ptr),
   A_X(graph), A_X(ptr))
RT(cudaGraphAddEventRecordNode, (DEPS, cudaEvent_t event),
   D(cuGraphAddEventRecordNode, cuGraphAddEventRecordNode, 11010)(node, graph, deps, count, event),
   A_X(graph), A_X(event))
RT(cudaGraphAddEventWaitNode, (DEPS, cudaEvent_t event),
   D(cuGraphAddEventWaitNode, cuGraphAddEventWaitNode, 11010)(node, graph, deps, count, event),
   A_X(graph), A_X(event))
RT(cudaGraphAddDependencies,
   (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
    GRAPH_EDGES size_t count),
   D(cuGraphAddDependencies, cuGraphAddDependencies, 10000)(graph, from, to, count), A_X(graph))
RT(cudaGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
   D(cuGraphGetNodes, cuGraphGetNodes, 10000)(graph, nodes, count), A_X(graph))
RT(cudaGraphGetRootNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
   D(cuGraphGetRootNodes, cuGraphGetRootNodes, 10000)(graph, nodes, count), A_X(graph))
RT(cudaGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type),
   D(cuGraphNodeGetType, cuGraphNodeGetType, 10000)(node, (CUgraphNodeType *)type))
RT(cudaGraphDestroyNode, (cudaGraphNode_t node),
   D(cuGraphDestroyNode, cuGraphDestroyNode, 10000)(node), A_X(node))
RT(cudaGraphExecKernelNodeSetParams,
   (cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaKernelNodeParams *params),
   exec_kernel(exec, node, params), A_X(exec), A_X(node))
RT(cudaGraphInstantiate, (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
   D(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040)(exec, graph, flags),
   A_OUT("exec", exec), A_X(graph), A_U(flags))
RT(cudaGraphInstantiateWithFlags,
   (cudaGraphExec_t * exec, cudaGraph_t graph, unsigned long long flags),
   D(cuGraphInstantiateWithFlags, cuGraphInstantiateWithFlags, 11040)(exec, graph, flags),
   A_OUT("exec", exec), A_X(graph), A_U(flags))
RT2(cudaGraphInstantiateWithParams, _ptsz,
    (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params),
    D2(cuGraphInstantiateWithParams, cuGraphInstantiateWithParams, 12000,
       12000)(exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params),
    A_OUT("exec", exec), A_X(graph))
RT(cudaGraphExecGetFlags, (cudaGraphExec_t exec, unsigned long long *flags),
   D(cuGraphExecGetFlags, cuGraphExecGetFlags, 12000)(exec, (cuuint64_t *)flags), A_X(exec))
RT(cudaGraphExecUpdate,
   (cudaGraphExec_t exec, cudaGraph_t graph, cudaGraphExecUpdateResultInfo *info),
   D(cuGraphExecUpdate_v2, cuGraphExecUpdate, 12000)(exec, graph,
                                                     (CUgraphExecUpdateResultInfo *)info),
   A_X(exec), A_X(graph))
RT2(cudaGraphUpload, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
    D2(cuGraphUpload, cuGraphUpload, 11010, 11010)(exec, stream), A_X(exec), A_X(stream))
RT2(cudaGraphLaunch, _ptsz, (cudaGraphExec_t exec, cudaStream_t stream),
    D2(cuGraphLaunch, cuGraphLaunch, 10000, 10000)(exec, stream), A_X(exec), A_X(stream))
RT(cudaGraphExecDestroy, (cudaGraphExec_t exec),
   D(cuGraphExecDestroy, cuGraphExecDestroy, 10000)(exec), A_X(exec))
