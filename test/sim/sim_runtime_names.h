/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_RUNTIME_NAMES_H
#define SIM_RUNTIME_NAMES_H

/*
 * The parameters of each entry point of the runtime, \
    in their order: from them comes the struct of
 * arguments that a callback of CUPTI is shown. A test holds them against the definitions.
 */

/* clang-format off */
#define SIM_NAMES_none
#define SIM_NAMES___cudaGetKernel kernel, host
#define SIM_NAMES___cudaGetProcAddress symbol, pfn, version, flags, status
#define SIM_NAMES___cudaLaunchKernel kernel, grid, block, args, shared, stream
#define SIM_NAMES_cudaArrayGetInfo desc, extent, flags, array
#define SIM_NAMES_cudaChooseDevice device, prop
#define SIM_NAMES_cudaCtxResetPersistingL2Cache
#define SIM_NAMES_cudaDestroyExternalMemory handle
#define SIM_NAMES_cudaDestroyExternalSemaphore handle
#define SIM_NAMES_cudaDeviceCanAccessPeer can, device, peer
#define SIM_NAMES_cudaDeviceDisablePeerAccess peer
#define SIM_NAMES_cudaDeviceEnablePeerAccess peer, flags
#define SIM_NAMES_cudaDeviceGetAttribute value, which, device
#define SIM_NAMES_cudaDeviceGetByPCIBusId device, id
#define SIM_NAMES_cudaDeviceGetCacheConfig config
#define SIM_NAMES_cudaDeviceGetDefaultMemPool pool, device
#define SIM_NAMES_cudaDeviceGetLimit value, limit
#define SIM_NAMES_cudaDeviceGetMemPool pool, device
#define SIM_NAMES_cudaDeviceGetP2PAttribute value, which, device, peer
#define SIM_NAMES_cudaDeviceGetPCIBusId id, bytes, device
#define SIM_NAMES_cudaDeviceGetSharedMemConfig config
#define SIM_NAMES_cudaDeviceGetStreamPriorityRange least, greatest
#define SIM_NAMES_cudaDeviceGraphMemTrim device
#define SIM_NAMES_cudaDeviceReset
#define SIM_NAMES_cudaDeviceSetCacheConfig config
#define SIM_NAMES_cudaDeviceSetLimit limit, value
#define SIM_NAMES_cudaDeviceSetMemPool device, pool
#define SIM_NAMES_cudaDeviceSetSharedMemConfig config
#define SIM_NAMES_cudaDeviceSynchronize
#define SIM_NAMES_cudaDriverGetVersion version
#define SIM_NAMES_cudaEventCreate event
#define SIM_NAMES_cudaEventCreateWithFlags event, flags
#define SIM_NAMES_cudaEventDestroy event
#define SIM_NAMES_cudaEventElapsedTime ms, start, end
#define SIM_NAMES_cudaEventQuery event
#define SIM_NAMES_cudaEventRecord event, stream
#define SIM_NAMES_cudaEventRecordWithFlags event, stream, flags
#define SIM_NAMES_cudaEventSynchronize event
#define SIM_NAMES_cudaExternalMemoryGetMappedBuffer ptr, handle, desc
#define SIM_NAMES_cudaExternalMemoryGetMappedMipmappedArray out, handle, desc
#define SIM_NAMES_cudaFree ptr
#define SIM_NAMES_cudaFreeArray array
#define SIM_NAMES_cudaFreeAsync ptr, stream
#define SIM_NAMES_cudaFreeHost ptr
#define SIM_NAMES_cudaFreeMipmappedArray array
#define SIM_NAMES_cudaFuncGetAttributes out, func
#define SIM_NAMES_cudaFuncGetName name, func
#define SIM_NAMES_cudaFuncSetAttribute func, attribute, value
#define SIM_NAMES_cudaFuncSetCacheConfig func, config
#define SIM_NAMES_cudaFuncSetSharedMemConfig func, config
#define SIM_NAMES_cudaGetChannelDesc desc, array
#define SIM_NAMES_cudaGetDevice device
#define SIM_NAMES_cudaGetDeviceCount count
#define SIM_NAMES_cudaGetDeviceFlags flags
#define SIM_NAMES_cudaGetDeviceProperties prop, device
#define SIM_NAMES_cudaGetDeviceProperties_v2 prop, device
#define SIM_NAMES_cudaGetDriverEntryPoint symbol, pfn, flags, status
#define SIM_NAMES_cudaGetDriverEntryPointByVersion symbol, pfn, version, flags, status
#define SIM_NAMES_cudaGetExportTable table, id
#define SIM_NAMES_cudaGetFuncBySymbol out, symbol
#define SIM_NAMES_cudaGetKernel kernel, symbol
#define SIM_NAMES_cudaGetLastError
#define SIM_NAMES_cudaGetMipmappedArrayLevel level, array, index
#define SIM_NAMES_cudaGetSymbolAddress ptr, symbol
#define SIM_NAMES_cudaGetSymbolSize bytes, symbol
#define SIM_NAMES_cudaGraphAddChildGraphNode node, graph, deps, count, child
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaGraphAddDependencies graph, from, to, count
#else
#define SIM_NAMES_cudaGraphAddDependencies graph, from, to, edges, count
#endif
#define SIM_NAMES_cudaGraphAddEmptyNode node, graph, deps, count
#define SIM_NAMES_cudaGraphAddEventRecordNode node, graph, deps, count, event
#define SIM_NAMES_cudaGraphAddEventWaitNode node, graph, deps, count, event
#define SIM_NAMES_cudaGraphAddHostNode node, graph, deps, count, params
#define SIM_NAMES_cudaGraphAddKernelNode node, graph, deps, count, params
#define SIM_NAMES_cudaGraphAddMemAllocNode node, graph, deps, count, params
#define SIM_NAMES_cudaGraphAddMemFreeNode node, graph, deps, count, ptr
#define SIM_NAMES_cudaGraphAddMemcpyNode node, graph, deps, count, params
#define SIM_NAMES_cudaGraphAddMemcpyNode1D node, graph, deps, count, dst, src, bytes, kind
#define SIM_NAMES_cudaGraphAddMemsetNode node, graph, deps, count, params
#define SIM_NAMES_cudaGraphClone clone, graph
#define SIM_NAMES_cudaGraphCreate graph, flags
#define SIM_NAMES_cudaGraphDestroy graph
#define SIM_NAMES_cudaGraphDestroyNode node
#define SIM_NAMES_cudaGraphExecDestroy exec
#define SIM_NAMES_cudaGraphExecGetFlags exec, flags
#define SIM_NAMES_cudaGraphExecKernelNodeSetParams exec, node, params
#define SIM_NAMES_cudaGraphExecUpdate exec, graph, info
#define SIM_NAMES_cudaGraphGetNodes graph, nodes, count
#define SIM_NAMES_cudaGraphGetRootNodes graph, nodes, count
#define SIM_NAMES_cudaGraphInstantiate exec, graph, flags
#define SIM_NAMES_cudaGraphInstantiateWithFlags exec, graph, flags
#define SIM_NAMES_cudaGraphInstantiateWithParams exec, graph, params
#define SIM_NAMES_cudaGraphLaunch exec, stream
#define SIM_NAMES_cudaGraphNodeGetType node, type
#define SIM_NAMES_cudaGraphUpload exec, stream
#define SIM_NAMES_cudaHostAlloc ptr, bytes, flags
#define SIM_NAMES_cudaHostGetDevicePointer device, host, flags
#define SIM_NAMES_cudaHostGetFlags flags, host
#define SIM_NAMES_cudaHostRegister ptr, bytes, flags
#define SIM_NAMES_cudaHostUnregister ptr
#define SIM_NAMES_cudaImportExternalMemory out, desc
#define SIM_NAMES_cudaImportExternalSemaphore out, desc
#define SIM_NAMES_cudaInitDevice device, device_flags_, flags
#define SIM_NAMES_cudaIpcCloseMemHandle ptr
#define SIM_NAMES_cudaIpcGetEventHandle handle, event
#define SIM_NAMES_cudaIpcGetMemHandle handle, ptr
#define SIM_NAMES_cudaIpcOpenEventHandle event, handle
#define SIM_NAMES_cudaIpcOpenMemHandle ptr, handle, flags
#define SIM_NAMES_cudaLaunchCooperativeKernel func, grid, block, args, shared, stream
#define SIM_NAMES_cudaLaunchCooperativeKernelMultiDevice list, count, flags
#define SIM_NAMES_cudaLaunchHostFunc stream, fn, data
#define SIM_NAMES_cudaLaunchKernel func, grid, block, args, shared, stream
#define SIM_NAMES_cudaLaunchKernelExC config, func, args
#define SIM_NAMES_cudaLibraryEnumerateKernels kernels, count, library
#define SIM_NAMES_cudaLibraryGetGlobal ptr, bytes, library, name
#define SIM_NAMES_cudaLibraryGetKernel kernel, library, name
#define SIM_NAMES_cudaLibraryGetKernelCount count, library
#define SIM_NAMES_cudaLibraryGetManaged ptr, bytes, library, name
#define SIM_NAMES_cudaLibraryLoadData library, code, jit, jit_values, jit_count, options, \
    values, count
#define SIM_NAMES_cudaLibraryLoadFromFile library, path, jit, jit_values, jit_count, options, \
    values, count
#define SIM_NAMES_cudaLibraryUnload library
#define SIM_NAMES_cudaMalloc ptr, bytes
#define SIM_NAMES_cudaMalloc3D ptr, extent
#define SIM_NAMES_cudaMalloc3DArray array, desc, extent, flags
#define SIM_NAMES_cudaMallocArray array, desc, width, height, flags
#define SIM_NAMES_cudaMallocAsync ptr, bytes, stream
#define SIM_NAMES_cudaMallocFromPoolAsync ptr, bytes, pool, stream
#define SIM_NAMES_cudaMallocHost ptr, bytes
#define SIM_NAMES_cudaMallocManaged ptr, bytes, flags
#define SIM_NAMES_cudaMallocMipmappedArray array, desc, extent, levels, flags
#define SIM_NAMES_cudaMallocPitch ptr, pitch, width, height
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaMemAdvise ptr, bytes, advice, device
#else
#define SIM_NAMES_cudaMemAdvise ptr, bytes, advice, location
#endif
#define SIM_NAMES_cudaMemAdvise_v2 ptr, bytes, advice, location
#define SIM_NAMES_cudaMemDiscardAndPrefetchBatchAsync ptrs, sizes, count, locations, index, \
    location_count, flags, stream
#define SIM_NAMES_cudaMemDiscardBatchAsync ptrs, sizes, count, flags, stream
#define SIM_NAMES_cudaMemGetDefaultMemPool pool, location, type
#define SIM_NAMES_cudaMemGetInfo free_bytes, total
#define SIM_NAMES_cudaMemGetMemPool pool, location, type
#define SIM_NAMES_cudaMemPoolCreate pool, props
#define SIM_NAMES_cudaMemPoolDestroy pool
#define SIM_NAMES_cudaMemPoolExportPointer data, ptr
#define SIM_NAMES_cudaMemPoolGetAccess flags, pool, location
#define SIM_NAMES_cudaMemPoolGetAttribute pool, attribute, value
#define SIM_NAMES_cudaMemPoolImportPointer ptr, pool, data
#define SIM_NAMES_cudaMemPoolSetAccess pool, list, count
#define SIM_NAMES_cudaMemPoolSetAttribute pool, attribute, value
#define SIM_NAMES_cudaMemPoolTrimTo pool, bytes
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaMemPrefetchAsync ptr, bytes, device, stream
#else
#define SIM_NAMES_cudaMemPrefetchAsync ptr, bytes, location, flags, stream
#endif
#define SIM_NAMES_cudaMemPrefetchAsync_v2 ptr, bytes, location, flags, stream
#define SIM_NAMES_cudaMemPrefetchBatchAsync ptrs, sizes, count, locations, index, \
    location_count, flags, stream
#define SIM_NAMES_cudaMemRangeGetAttribute data, data_bytes, attribute, ptr, bytes
#define SIM_NAMES_cudaMemSetMemPool location, type, pool
#define SIM_NAMES_cudaMemcpy dst, src, bytes, kind
#define SIM_NAMES_cudaMemcpy2D dst, dpitch, src, spitch, width, height, kind
#define SIM_NAMES_cudaMemcpy2DArrayToArray dst, dx, dy, src, sx, sy, width, height, kind
#define SIM_NAMES_cudaMemcpy2DAsync dst, dpitch, src, spitch, width, height, kind, stream
#define SIM_NAMES_cudaMemcpy2DFromArray dst, dpitch, src, x, y, width, height, kind
#define SIM_NAMES_cudaMemcpy2DFromArrayAsync dst, dpitch, src, x, y, width, height, kind, stream
#define SIM_NAMES_cudaMemcpy2DToArray dst, x, y, src, spitch, width, height, kind
#define SIM_NAMES_cudaMemcpy2DToArrayAsync dst, x, y, src, spitch, width, height, kind, stream
#define SIM_NAMES_cudaMemcpy3D copy
#define SIM_NAMES_cudaMemcpy3DAsync copy, stream
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaMemcpy3DBatchAsync count, list, fail, flags, stream
#else
#define SIM_NAMES_cudaMemcpy3DBatchAsync count, list, flags, stream
#endif
#define SIM_NAMES_cudaMemcpy3DPeer copy
#define SIM_NAMES_cudaMemcpy3DPeerAsync copy, stream
#define SIM_NAMES_cudaMemcpyArrayToArray dst, dx, dy, src, sx, sy, bytes, kind
#define SIM_NAMES_cudaMemcpyAsync dst, src, bytes, kind, stream
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaMemcpyBatchAsync dsts, srcs, sizes, count, attrs, attr_index, attr_count, \
    fail, stream
#else
#define SIM_NAMES_cudaMemcpyBatchAsync dsts, srcs, sizes, count, attrs, attr_index, attr_count, \
    stream
#endif
#define SIM_NAMES_cudaMemcpyFromArray dst, src, x, y, bytes, kind
#define SIM_NAMES_cudaMemcpyFromArrayAsync dst, src, x, y, bytes, kind, stream
#define SIM_NAMES_cudaMemcpyFromSymbol dst, symbol, bytes, offset, kind
#define SIM_NAMES_cudaMemcpyFromSymbolAsync dst, symbol, bytes, offset, kind, stream
#define SIM_NAMES_cudaMemcpyPeer dst, to, src, from, bytes
#define SIM_NAMES_cudaMemcpyPeerAsync dst, to, src, from, bytes, stream
#define SIM_NAMES_cudaMemcpyToArray dst, x, y, src, bytes, kind
#define SIM_NAMES_cudaMemcpyToArrayAsync dst, x, y, src, bytes, kind, stream
#define SIM_NAMES_cudaMemcpyToSymbol symbol, src, bytes, offset, kind
#define SIM_NAMES_cudaMemcpyToSymbolAsync symbol, src, bytes, offset, kind, stream
#define SIM_NAMES_cudaMemset dst, value, bytes
#define SIM_NAMES_cudaMemset2D dst, pitch, value, width, height
#define SIM_NAMES_cudaMemset2DAsync dst, pitch, value, width, height, stream
#define SIM_NAMES_cudaMemset3D dst, value, extent
#define SIM_NAMES_cudaMemset3DAsync dst, value, extent, stream
#define SIM_NAMES_cudaMemsetAsync dst, value, bytes, stream
#define SIM_NAMES_cudaOccupancyMaxActiveBlocksPerMultiprocessor blocks, func, block, shared
#define SIM_NAMES_cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags blocks, func, block, \
    shared, flags
#define SIM_NAMES_cudaPeekAtLastError
#define SIM_NAMES_cudaPointerGetAttributes attributes, ptr
#define SIM_NAMES_cudaProfilerStart
#define SIM_NAMES_cudaProfilerStop
#define SIM_NAMES_cudaRuntimeGetVersion version
#define SIM_NAMES_cudaSetDevice device
#define SIM_NAMES_cudaSetDeviceFlags flags
#define SIM_NAMES_cudaSetValidDevices devices, count
#define SIM_NAMES_cudaSignalExternalSemaphoresAsync list, params, count, stream
#define SIM_NAMES_cudaStreamAddCallback stream, fn, data, flags
#define SIM_NAMES_cudaStreamAttachMemAsync stream, ptr, bytes, flags
#define SIM_NAMES_cudaStreamBeginCapture stream, mode
#define SIM_NAMES_cudaStreamBeginCaptureToGraph stream, graph, deps, edges, count, mode
#define SIM_NAMES_cudaStreamCopyAttributes dst, src
#define SIM_NAMES_cudaStreamCreate stream
#define SIM_NAMES_cudaStreamCreateWithFlags stream, flags
#define SIM_NAMES_cudaStreamCreateWithPriority stream, flags, priority
#define SIM_NAMES_cudaStreamDestroy stream
#define SIM_NAMES_cudaStreamEndCapture stream, graph
#define SIM_NAMES_cudaStreamGetAttribute stream, id, value
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaStreamGetCaptureInfo stream, status, id
#else
#define SIM_NAMES_cudaStreamGetCaptureInfo stream, status, id, graph, deps, edges, count
#endif
#define SIM_NAMES_cudaStreamGetCaptureInfo_v2 stream, status, id, graph, deps, count
#define SIM_NAMES_cudaStreamGetCaptureInfo_v3 stream, status, id, graph, deps, edges, count
#define SIM_NAMES_cudaStreamGetDevice stream, device
#define SIM_NAMES_cudaStreamGetFlags stream, flags
#define SIM_NAMES_cudaStreamGetId stream, id
#define SIM_NAMES_cudaStreamGetPriority stream, priority
#define SIM_NAMES_cudaStreamIsCapturing stream, status
#define SIM_NAMES_cudaStreamQuery stream
#define SIM_NAMES_cudaStreamSetAttribute stream, id, value
#define SIM_NAMES_cudaStreamSynchronize stream
#if SIM_CUDART_MAJOR == 12
#define SIM_NAMES_cudaStreamUpdateCaptureDependencies stream, deps, count, flags
#else
#define SIM_NAMES_cudaStreamUpdateCaptureDependencies stream, deps, edges, count, flags
#endif
#define SIM_NAMES_cudaStreamWaitEvent stream, event, flags
#define SIM_NAMES_cudaThreadExchangeStreamCaptureMode mode
#define SIM_NAMES_cudaThreadExit
#define SIM_NAMES_cudaThreadSynchronize
#define SIM_NAMES_cudaWaitExternalSemaphoresAsync list, params, count, stream
/* clang-format on */

#endif
