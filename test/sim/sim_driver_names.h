/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_DRIVER_NAMES_H
#define SIM_DRIVER_NAMES_H

/*
 * The parameters of each entry point of the driver, in their order: from them comes the struct of
 * arguments that a callback of CUPTI is shown. A test holds them against the definitions.
 */

/* clang-format off */
#define SIM_NAMES_none
#define SIM_NAMES_cuArray3DCreate array, desc
#define SIM_NAMES_cuArray3DCreate_v2 array, desc
#define SIM_NAMES_cuArray3DGetDescriptor_v2 desc, array
#define SIM_NAMES_cuArrayCreate array, desc
#define SIM_NAMES_cuArrayCreate_v2 array, desc
#define SIM_NAMES_cuArrayDestroy array
#define SIM_NAMES_cuArrayGetDescriptor_v2 desc, array
#define SIM_NAMES_cuCtxAttach context, flags
#define SIM_NAMES_cuCtxCreate context, flags, device
#define SIM_NAMES_cuCtxCreate_v2 context, flags, device
#define SIM_NAMES_cuCtxCreate_v3 context, affinity, count, flags, device
#define SIM_NAMES_cuCtxCreate_v4 context, params, flags, device
#define SIM_NAMES_cuCtxDestroy ctx
#define SIM_NAMES_cuCtxDestroy_v2 ctx
#define SIM_NAMES_cuCtxDetach ctx
#define SIM_NAMES_cuCtxDisablePeerAccess peer
#define SIM_NAMES_cuCtxEnablePeerAccess peer, flags
#define SIM_NAMES_cuCtxGetApiVersion ctx, version
#define SIM_NAMES_cuCtxGetCacheConfig config
#define SIM_NAMES_cuCtxGetCurrent context
#define SIM_NAMES_cuCtxGetDevice device
#define SIM_NAMES_cuCtxGetDevice_v2 device, ctx
#define SIM_NAMES_cuCtxGetFlags flags
#define SIM_NAMES_cuCtxGetId ctx, id
#define SIM_NAMES_cuCtxGetLimit value, limit
#define SIM_NAMES_cuCtxGetSharedMemConfig config
#define SIM_NAMES_cuCtxGetStreamPriorityRange least, greatest
#define SIM_NAMES_cuCtxFromGreenCtx context, green
#define SIM_NAMES_cuCtxPopCurrent context
#define SIM_NAMES_cuCtxPopCurrent_v2 context
#define SIM_NAMES_cuCtxPushCurrent ctx
#define SIM_NAMES_cuCtxPushCurrent_v2 ctx
#define SIM_NAMES_cuCtxRecordEvent ctx, event
#define SIM_NAMES_cuCtxResetPersistingL2Cache
#define SIM_NAMES_cuCtxSetCacheConfig config
#define SIM_NAMES_cuCtxSetCurrent ctx
#define SIM_NAMES_cuCtxSetFlags flags
#define SIM_NAMES_cuCtxSetLimit limit, value
#define SIM_NAMES_cuCtxSetSharedMemConfig config
#define SIM_NAMES_cuCtxSynchronize
#define SIM_NAMES_cuCtxSynchronize_v2 ctx
#define SIM_NAMES_cuCtxWaitEvent ctx, event
#define SIM_NAMES_cuDestroyExternalMemory handle
#define SIM_NAMES_cuDestroyExternalSemaphore handle
#define SIM_NAMES_cuDeviceCanAccessPeer can, device, peer
#define SIM_NAMES_cuDeviceComputeCapability major, minor, device
#define SIM_NAMES_cuDeviceGet device, ordinal
#define SIM_NAMES_cuDeviceGetAttribute value, attribute, device
#define SIM_NAMES_cuDeviceGetByPCIBusId device, id
#define SIM_NAMES_cuDeviceGetCount count
#define SIM_NAMES_cuDeviceGetDefaultMemPool pool, device
#define SIM_NAMES_cuDeviceGetGraphMemAttribute device, attribute, value
#define SIM_NAMES_cuDeviceGetLuid luid, mask, device
#define SIM_NAMES_cuDeviceGetMemPool pool, device
#define SIM_NAMES_cuDeviceGetName name, bytes, device
#define SIM_NAMES_cuDeviceGetP2PAttribute value, attribute, device, peer
#define SIM_NAMES_cuDeviceGetPCIBusId id, bytes, device
#define SIM_NAMES_cuDeviceGetProperties prop, device
#define SIM_NAMES_cuDeviceGetUuid uuid, device
#define SIM_NAMES_cuDeviceGetUuid_v2 uuid, device
#define SIM_NAMES_cuDeviceGraphMemTrim device
#define SIM_NAMES_cuDevicePrimaryCtxGetState device, flags, active
#define SIM_NAMES_cuDevicePrimaryCtxRelease device
#define SIM_NAMES_cuDevicePrimaryCtxRelease_v2 device
#define SIM_NAMES_cuDevicePrimaryCtxReset device
#define SIM_NAMES_cuDevicePrimaryCtxReset_v2 device
#define SIM_NAMES_cuDevicePrimaryCtxRetain context, device
#define SIM_NAMES_cuDevicePrimaryCtxSetFlags device, flags
#define SIM_NAMES_cuDevicePrimaryCtxSetFlags_v2 device, flags
#define SIM_NAMES_cuDeviceSetGraphMemAttribute device, attribute, value
#define SIM_NAMES_cuDeviceSetMemPool device, pool
#define SIM_NAMES_cuDeviceTotalMem_v2 bytes, device
#define SIM_NAMES_cuDriverGetVersion version
#define SIM_NAMES_cuEventCreate event, flags
#define SIM_NAMES_cuEventDestroy event
#define SIM_NAMES_cuEventDestroy_v2 event
#define SIM_NAMES_cuEventElapsedTime ms, start, end
#define SIM_NAMES_cuEventElapsedTime_v2 ms, start, end
#define SIM_NAMES_cuEventQuery event
#define SIM_NAMES_cuEventRecord event, stream
#define SIM_NAMES_cuEventRecordWithFlags event, stream, flags
#define SIM_NAMES_cuEventSynchronize event
#define SIM_NAMES_cuExternalMemoryGetMappedBuffer ptr, handle, desc
#define SIM_NAMES_cuExternalMemoryGetMappedMipmappedArray mipmap, handle, desc
#define SIM_NAMES_cuFlushGPUDirectRDMAWrites target, scope
#define SIM_NAMES_cuFuncGetAttribute value, attribute, function
#define SIM_NAMES_cuFuncGetModule module, function
#define SIM_NAMES_cuFuncGetName name, function
#define SIM_NAMES_cuFuncGetParamInfo function, index, offset, bytes
#define SIM_NAMES_cuFuncIsLoaded state, function
#define SIM_NAMES_cuFuncLoad function
#define SIM_NAMES_cuFuncSetAttribute function, attribute, value
#define SIM_NAMES_cuFuncSetBlockShape function, x, y, z
#define SIM_NAMES_cuFuncSetCacheConfig function, config
#define SIM_NAMES_cuFuncSetSharedMemConfig function, config
#define SIM_NAMES_cuFuncSetSharedSize function, bytes
#define SIM_NAMES_cuGetErrorName code, name
#define SIM_NAMES_cuGetErrorString code, text
#define SIM_NAMES_cuGetExportTable table, id
#define SIM_NAMES_cuGetProcAddress name, pfn, version, flags
#define SIM_NAMES_cuGetProcAddress_v2 name, pfn, version, flags, status
#define SIM_NAMES_cuGraphAddChildGraphNode node, graph, deps, count, child
#define SIM_NAMES_cuGraphAddDependencies graph, from, to, count
#define SIM_NAMES_cuGraphAddDependencies_v2 graph, from, to, edges, count
#define SIM_NAMES_cuGraphAddEmptyNode node, graph, deps, count
#define SIM_NAMES_cuGraphAddEventRecordNode node, graph, deps, count, event
#define SIM_NAMES_cuGraphAddEventWaitNode node, graph, deps, count, event
#define SIM_NAMES_cuGraphAddHostNode node, graph, deps, count, params
#define SIM_NAMES_cuGraphAddKernelNode_v2 node, graph, deps, count, params
#define SIM_NAMES_cuGraphAddMemAllocNode node, graph, deps, count, params
#define SIM_NAMES_cuGraphAddMemFreeNode node, graph, deps, count, ptr
#define SIM_NAMES_cuGraphAddMemcpyNode node, graph, deps, count, copy, context
#define SIM_NAMES_cuGraphAddMemsetNode node, graph, deps, count, params, context
#define SIM_NAMES_cuGraphClone clone, graph
#define SIM_NAMES_cuGraphCreate graph, flags
#define SIM_NAMES_cuGraphDestroy graph
#define SIM_NAMES_cuGraphDestroyNode node
#define SIM_NAMES_cuGraphExecDestroy exec
#define SIM_NAMES_cuGraphExecGetFlags exec, flags
#define SIM_NAMES_cuGraphExecKernelNodeSetParams_v2 exec, node, params
#define SIM_NAMES_cuGraphExecUpdate exec, graph, node, why
#define SIM_NAMES_cuGraphExecUpdate_v2 exec, graph, info
#define SIM_NAMES_cuGraphGetNodes graph, nodes, count
#define SIM_NAMES_cuGraphGetRootNodes graph, nodes, count
#define SIM_NAMES_cuGraphInstantiate exec, graph, node, buffer, bytes
#define SIM_NAMES_cuGraphInstantiateWithFlags exec, graph, flags
#define SIM_NAMES_cuGraphInstantiateWithParams exec, graph, params
#define SIM_NAMES_cuGraphInstantiate_v2 exec, graph, node, buffer, bytes
#define SIM_NAMES_cuGraphKernelNodeGetParams_v2 node, params
#define SIM_NAMES_cuGraphKernelNodeSetParams_v2 node, params
#define SIM_NAMES_cuGraphLaunch exec, stream
#define SIM_NAMES_cuGraphNodeGetType node, type
#define SIM_NAMES_cuGraphUpload exec, stream
#define SIM_NAMES_cuGreenCtxCreate green, desc, device, flags
#define SIM_NAMES_cuGreenCtxDestroy ctx
#define SIM_NAMES_cuGreenCtxRecordEvent ctx, event
#define SIM_NAMES_cuGreenCtxWaitEvent ctx, event
#define SIM_NAMES_cuImportExternalMemory out, desc
#define SIM_NAMES_cuImportExternalSemaphore out, desc
#define SIM_NAMES_cuInit flags
#define SIM_NAMES_cuIpcCloseMemHandle ptr
#define SIM_NAMES_cuIpcGetEventHandle handle, event
#define SIM_NAMES_cuIpcGetMemHandle handle, ptr
#define SIM_NAMES_cuIpcOpenEventHandle event, handle
#define SIM_NAMES_cuIpcOpenMemHandle ptr, handle, flags
#define SIM_NAMES_cuIpcOpenMemHandle_v2 ptr, handle, flags
#define SIM_NAMES_cuKernelGetAttribute value, attribute, kernel, device
#define SIM_NAMES_cuKernelGetFunction function, kernel
#define SIM_NAMES_cuKernelGetLibrary library, kernel
#define SIM_NAMES_cuKernelGetName name, kernel
#define SIM_NAMES_cuKernelGetParamInfo kernel, index, offset, bytes
#define SIM_NAMES_cuKernelSetAttribute attribute, value, kernel, device
#define SIM_NAMES_cuKernelSetCacheConfig kernel, config, device
#define SIM_NAMES_cuLaunch function
#define SIM_NAMES_cuLaunchCooperativeKernel function, gx, gy, gz, bx, by, bz, shared, stream, \
    params
#define SIM_NAMES_cuLaunchCooperativeKernelMultiDevice list, count, flags
#define SIM_NAMES_cuLaunchGrid function, width, height
#define SIM_NAMES_cuLaunchGridAsync function, width, height, stream
#define SIM_NAMES_cuLaunchHostFunc stream, fn, data
#define SIM_NAMES_cuLaunchKernel function, gx, gy, gz, bx, by, bz, shared, stream, params, extra
#define SIM_NAMES_cuLaunchKernelEx config, function, params, extra
#define SIM_NAMES_cuLibraryEnumerateKernels kernels, count, library
#define SIM_NAMES_cuLibraryGetGlobal ptr, bytes, library, name
#define SIM_NAMES_cuLibraryGetKernel kernel, library, name
#define SIM_NAMES_cuLibraryGetKernelCount count, library
#define SIM_NAMES_cuLibraryGetManaged ptr, bytes, library, name
#define SIM_NAMES_cuLibraryGetModule module, library
#define SIM_NAMES_cuLibraryLoadData library, code, jit, jit_values, jit_count, options, values, \
    count
#define SIM_NAMES_cuLibraryLoadFromFile library, path, jit, jit_values, jit_count, options, \
    values, count
#define SIM_NAMES_cuLibraryUnload library
#define SIM_NAMES_cuLinkAddData state, type, data, bytes, name, count, options, values
#define SIM_NAMES_cuLinkAddData_v2 state, type, data, bytes, name, count, options, values
#define SIM_NAMES_cuLinkAddFile state, type, path, count, options, values
#define SIM_NAMES_cuLinkAddFile_v2 state, type, path, count, options, values
#define SIM_NAMES_cuLinkComplete state, image, bytes
#define SIM_NAMES_cuLinkCreate count, options, values, state
#define SIM_NAMES_cuLinkCreate_v2 count, options, values, state
#define SIM_NAMES_cuLinkDestroy state
#define SIM_NAMES_cuMemAddressFree ptr, bytes
#define SIM_NAMES_cuMemAddressReserve ptr, bytes, alignment, hint, flags
#define SIM_NAMES_cuMemAdvise ptr, bytes, advice, device
#define SIM_NAMES_cuMemAdvise_v2 ptr, bytes, advice, location
#define SIM_NAMES_cuMemAlloc ptr, bytes
#define SIM_NAMES_cuMemAllocAsync ptr, bytes, stream
#define SIM_NAMES_cuMemAllocFromPoolAsync ptr, bytes, pool, stream
#define SIM_NAMES_cuMemAllocHost ptr, bytes
#define SIM_NAMES_cuMemAllocHost_v2 ptr, bytes
#define SIM_NAMES_cuMemAllocManaged ptr, bytes, flags
#define SIM_NAMES_cuMemAllocPitch ptr, pitch, width, height, element
#define SIM_NAMES_cuMemAllocPitch_v2 ptr, pitch, width, height, element
#define SIM_NAMES_cuMemAlloc_v2 ptr, bytes
#define SIM_NAMES_cuMemBatchDecompressAsync params, count, flags, fail, stream
#define SIM_NAMES_cuMemCreate handle, bytes, prop, flags
#define SIM_NAMES_cuMemDiscardAndPrefetchBatchAsync ptrs, sizes, count, locations, index, \
    location_count, flags, stream
#define SIM_NAMES_cuMemDiscardBatchAsync ptrs, sizes, count, flags, stream
#define SIM_NAMES_cuMemExportToShareableHandle shareable, handle, type, flags
#define SIM_NAMES_cuMemFree ptr
#define SIM_NAMES_cuMemFreeAsync ptr, stream
#define SIM_NAMES_cuMemFreeHost ptr
#define SIM_NAMES_cuMemFree_v2 ptr
#define SIM_NAMES_cuMemGetAddressRange_v2 base, bytes, ptr
#define SIM_NAMES_cuMemGetAllocationGranularity bytes, prop, flags
#define SIM_NAMES_cuMemGetDefaultMemPool pool, location, type
#define SIM_NAMES_cuMemGetInfo free_bytes, total
#define SIM_NAMES_cuMemGetInfo_v2 free_bytes, total
#define SIM_NAMES_cuMemGetMemPool pool, location, type
#define SIM_NAMES_cuMemHostAlloc ptr, bytes, flags
#define SIM_NAMES_cuMemHostGetDevicePointer_v2 device, host, flags
#define SIM_NAMES_cuMemHostGetFlags flags, host
#define SIM_NAMES_cuMemHostRegister ptr, bytes, flags
#define SIM_NAMES_cuMemHostRegister_v2 ptr, bytes, flags
#define SIM_NAMES_cuMemHostUnregister ptr
#define SIM_NAMES_cuMemImportFromShareableHandle handle, file, type
#define SIM_NAMES_cuMemMap ptr, bytes, offset, handle, flags
#define SIM_NAMES_cuMemMapArrayAsync list, count, stream
#define SIM_NAMES_cuMemPoolCreate pool, props
#define SIM_NAMES_cuMemPoolDestroy pool
#define SIM_NAMES_cuMemPoolExportPointer data, ptr
#define SIM_NAMES_cuMemPoolGetAccess flags, pool, location
#define SIM_NAMES_cuMemPoolGetAttribute pool, attribute, value
#define SIM_NAMES_cuMemPoolImportPointer ptr, pool, data
#define SIM_NAMES_cuMemPoolSetAccess pool, map, count
#define SIM_NAMES_cuMemPoolSetAttribute pool, attribute, value
#define SIM_NAMES_cuMemPoolTrimTo pool, bytes
#define SIM_NAMES_cuMemPrefetchAsync ptr, bytes, device, stream
#define SIM_NAMES_cuMemPrefetchAsync_v2 ptr, bytes, location, flags, stream
#define SIM_NAMES_cuMemPrefetchBatchAsync ptrs, sizes, count, locations, index, location_count, \
    flags, stream
#define SIM_NAMES_cuMemRangeGetAttribute data, data_bytes, attribute, ptr, bytes
#define SIM_NAMES_cuMemRelease handle
#define SIM_NAMES_cuMemRetainAllocationHandle handle, ptr
#define SIM_NAMES_cuMemSetAccess ptr, bytes, desc, count
#define SIM_NAMES_cuMemSetMemPool location, type, pool
#define SIM_NAMES_cuMemUnmap ptr, bytes
#define SIM_NAMES_cuMemcpy dst, src, bytes
#define SIM_NAMES_cuMemcpy2D copy
#define SIM_NAMES_cuMemcpy2DAsync copy, stream
#define SIM_NAMES_cuMemcpy2DAsync_v2 copy, stream
#define SIM_NAMES_cuMemcpy2DUnaligned copy
#define SIM_NAMES_cuMemcpy2DUnaligned_v2 copy
#define SIM_NAMES_cuMemcpy2D_v2 copy
#define SIM_NAMES_cuMemcpy3D copy
#define SIM_NAMES_cuMemcpy3DAsync copy, stream
#define SIM_NAMES_cuMemcpy3DAsync_v2 copy, stream
#define SIM_NAMES_cuMemcpy3DBatchAsync count, list, fail, flags, stream
#define SIM_NAMES_cuMemcpy3DBatchAsync_v2 count, list, flags, stream
#define SIM_NAMES_cuMemcpy3DPeer copy
#define SIM_NAMES_cuMemcpy3DPeerAsync copy, stream
#define SIM_NAMES_cuMemcpy3D_v2 copy
#define SIM_NAMES_cuMemcpyAsync dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyAtoA dst, dst_offset, src, src_offset, bytes
#define SIM_NAMES_cuMemcpyAtoA_v2 dst, dst_offset, src, src_offset, bytes
#define SIM_NAMES_cuMemcpyAtoD dst, src, offset, bytes
#define SIM_NAMES_cuMemcpyAtoD_v2 dst, src, offset, bytes
#define SIM_NAMES_cuMemcpyAtoH dst, src, offset, bytes
#define SIM_NAMES_cuMemcpyAtoHAsync dst, src, offset, bytes, stream
#define SIM_NAMES_cuMemcpyAtoHAsync_v2 dst, src, offset, bytes, stream
#define SIM_NAMES_cuMemcpyAtoH_v2 dst, src, offset, bytes
#define SIM_NAMES_cuMemcpyBatchAsync dsts, srcs, sizes, count, attrs, attr_index, attr_count, \
    fail, stream
#define SIM_NAMES_cuMemcpyBatchAsync_v2 dsts, srcs, sizes, count, attrs, attr_index, \
    attr_count, stream
#define SIM_NAMES_cuMemcpyDtoA dst, offset, src, bytes
#define SIM_NAMES_cuMemcpyDtoA_v2 dst, offset, src, bytes
#define SIM_NAMES_cuMemcpyDtoD dst, src, bytes
#define SIM_NAMES_cuMemcpyDtoDAsync dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyDtoDAsync_v2 dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyDtoD_v2 dst, src, bytes
#define SIM_NAMES_cuMemcpyDtoH dst, src, bytes
#define SIM_NAMES_cuMemcpyDtoHAsync dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyDtoHAsync_v2 dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyDtoH_v2 dst, src, bytes
#define SIM_NAMES_cuMemcpyHtoA dst, offset, src, bytes
#define SIM_NAMES_cuMemcpyHtoAAsync dst, offset, src, bytes, stream
#define SIM_NAMES_cuMemcpyHtoAAsync_v2 dst, offset, src, bytes, stream
#define SIM_NAMES_cuMemcpyHtoA_v2 dst, offset, src, bytes
#define SIM_NAMES_cuMemcpyHtoD dst, src, bytes
#define SIM_NAMES_cuMemcpyHtoDAsync dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyHtoDAsync_v2 dst, src, bytes, stream
#define SIM_NAMES_cuMemcpyHtoD_v2 dst, src, bytes
#define SIM_NAMES_cuMemcpyPeer dst, to, src, from, bytes
#define SIM_NAMES_cuMemcpyPeerAsync dst, to, src, from, bytes, stream
#define SIM_NAMES_cuMemsetD16 dst, value, count
#define SIM_NAMES_cuMemsetD16Async dst, value, count, stream
#define SIM_NAMES_cuMemsetD16_v2 dst, value, count
#define SIM_NAMES_cuMemsetD2D16 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD2D16Async dst, pitch, value, width, height, stream
#define SIM_NAMES_cuMemsetD2D16_v2 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD2D32 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD2D32Async dst, pitch, value, width, height, stream
#define SIM_NAMES_cuMemsetD2D32_v2 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD2D8 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD2D8Async dst, pitch, value, width, height, stream
#define SIM_NAMES_cuMemsetD2D8_v2 dst, pitch, value, width, height
#define SIM_NAMES_cuMemsetD32 dst, value, count
#define SIM_NAMES_cuMemsetD32Async dst, value, count, stream
#define SIM_NAMES_cuMemsetD32_v2 dst, value, count
#define SIM_NAMES_cuMemsetD8 dst, value, count
#define SIM_NAMES_cuMemsetD8Async dst, value, count, stream
#define SIM_NAMES_cuMemsetD8_v2 dst, value, count
#define SIM_NAMES_cuMipmappedArrayCreate mipmap, desc, levels
#define SIM_NAMES_cuMipmappedArrayDestroy mipmap
#define SIM_NAMES_cuMipmappedArrayGetLevel level, mipmap, index
#define SIM_NAMES_cuModuleEnumerateFunctions functions, count, module
#define SIM_NAMES_cuModuleGetFunction function, module, name
#define SIM_NAMES_cuModuleGetFunctionCount count, module
#define SIM_NAMES_cuModuleGetGlobal_v2 ptr, bytes, module, name
#define SIM_NAMES_cuModuleGetLoadingMode mode
#define SIM_NAMES_cuModuleLoad module, path
#define SIM_NAMES_cuModuleLoadData module, image
#define SIM_NAMES_cuModuleLoadDataEx module, image, count, options, values
#define SIM_NAMES_cuModuleLoadFatBinary module, image
#define SIM_NAMES_cuModuleUnload module
#define SIM_NAMES_cuMulticastBindAddr handle, offset, ptr, bytes, flags
#define SIM_NAMES_cuMulticastBindMem handle, offset, memory, memory_offset, bytes, flags
#define SIM_NAMES_cuMulticastCreate handle, prop
#define SIM_NAMES_cuMulticastUnbind handle, device, offset, bytes
#define SIM_NAMES_cuOccupancyAvailableDynamicSMemPerBlock bytes, function, blocks, block
#define SIM_NAMES_cuOccupancyMaxActiveBlocksPerMultiprocessor blocks, function, block, shared
#define SIM_NAMES_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags blocks, function, block, \
    shared, flags
#define SIM_NAMES_cuOccupancyMaxActiveClusters count, function, config
#define SIM_NAMES_cuOccupancyMaxPotentialClusterSize size, function, config
#define SIM_NAMES_cuParamSetSize function, bytes
#define SIM_NAMES_cuParamSetf function, offset, value
#define SIM_NAMES_cuParamSeti function, offset, value
#define SIM_NAMES_cuParamSetv function, offset, ptr, bytes
#define SIM_NAMES_cuPointerGetAttribute value, attribute, ptr
#define SIM_NAMES_cuPointerGetAttributes count, attributes, values, ptr
#define SIM_NAMES_cuPointerSetAttribute value, attribute, ptr
#define SIM_NAMES_cuProfilerInitialize config, output, mode
#define SIM_NAMES_cuProfilerStart
#define SIM_NAMES_cuProfilerStop
#define SIM_NAMES_cuSignalExternalSemaphoresAsync list, params, count, stream
#define SIM_NAMES_cuStreamAddCallback stream, fn, data, flags
#define SIM_NAMES_cuStreamAttachMemAsync stream, ptr, bytes, flags
#define SIM_NAMES_cuStreamBatchMemOp stream, count, list, flags
#define SIM_NAMES_cuStreamBatchMemOp_v2 stream, count, list, flags
#define SIM_NAMES_cuStreamBeginCapture stream
#define SIM_NAMES_cuStreamBeginCaptureToGraph stream, graph, deps, edges, count, mode
#define SIM_NAMES_cuStreamBeginCapture_v2 stream, mode
#define SIM_NAMES_cuStreamCopyAttributes dst, src
#define SIM_NAMES_cuStreamCreate stream, flags
#define SIM_NAMES_cuStreamCreateWithPriority stream, flags, priority
#define SIM_NAMES_cuStreamDestroy stream
#define SIM_NAMES_cuStreamDestroy_v2 stream
#define SIM_NAMES_cuStreamEndCapture stream, graph
#define SIM_NAMES_cuStreamGetAttribute stream, id, value
#define SIM_NAMES_cuStreamGetCaptureInfo stream, status, id
#define SIM_NAMES_cuStreamGetCaptureInfo_v2 stream, status, id, graph, deps, count
#define SIM_NAMES_cuStreamGetCaptureInfo_v3 stream, status, id, graph, deps, edges, count
#define SIM_NAMES_cuStreamGetCtx stream, context
#define SIM_NAMES_cuStreamGetCtx_v2 stream, context, green
#define SIM_NAMES_cuStreamGetDevice stream, device
#define SIM_NAMES_cuStreamGetFlags stream, flags
#define SIM_NAMES_cuStreamGetId stream, id
#define SIM_NAMES_cuStreamGetPriority stream, priority
#define SIM_NAMES_cuStreamIsCapturing stream, status
#define SIM_NAMES_cuStreamQuery stream
#define SIM_NAMES_cuStreamSetAttribute stream, id, value
#define SIM_NAMES_cuStreamSynchronize stream
#define SIM_NAMES_cuStreamUpdateCaptureDependencies stream, deps, count, flags
#define SIM_NAMES_cuStreamUpdateCaptureDependencies_v2 stream, deps, edges, count, flags
#define SIM_NAMES_cuStreamWaitEvent stream, event, flags
#define SIM_NAMES_cuStreamWaitValue32 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWaitValue32_v2 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWaitValue64 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWaitValue64_v2 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWriteValue32 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWriteValue32_v2 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWriteValue64 stream, ptr, value, flags
#define SIM_NAMES_cuStreamWriteValue64_v2 stream, ptr, value, flags
#define SIM_NAMES_cuThreadExchangeStreamCaptureMode mode
#define SIM_NAMES_cuWaitExternalSemaphoresAsync list, params, count, stream
/* clang-format on */

#endif
