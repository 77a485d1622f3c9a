/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDART_RENAMES_H
#define SIM_CUDART_RENAMES_H

/* The per-thread-default-stream names, and those that CUDA 12 gives a suffix. */

#include "sim_cudart_protos.h"

#ifndef SIM_NO_RENAMES

#if SIM_CUDART_MAJOR == 12
#define cudaGetDeviceProperties cudaGetDeviceProperties_v2
#endif

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM

#ifdef __cplusplus
extern "C" {
#endif
extern __typeof__(cudaEventRecord) cudaEventRecord_ptsz;
extern __typeof__(cudaEventRecordWithFlags) cudaEventRecordWithFlags_ptsz;
extern __typeof__(cudaFreeAsync) cudaFreeAsync_ptsz;
extern __typeof__(cudaGetDriverEntryPoint) cudaGetDriverEntryPoint_ptsz;
extern __typeof__(cudaGetDriverEntryPointByVersion) cudaGetDriverEntryPointByVersion_ptsz;
extern __typeof__(cudaGraphInstantiateWithParams) cudaGraphInstantiateWithParams_ptsz;
extern __typeof__(cudaGraphLaunch) cudaGraphLaunch_ptsz;
extern __typeof__(cudaGraphUpload) cudaGraphUpload_ptsz;
extern __typeof__(cudaLaunchCooperativeKernel) cudaLaunchCooperativeKernel_ptsz;
extern __typeof__(cudaLaunchHostFunc) cudaLaunchHostFunc_ptsz;
extern __typeof__(cudaLaunchKernel) cudaLaunchKernel_ptsz;
extern __typeof__(cudaLaunchKernelExC) cudaLaunchKernelExC_ptsz;
extern __typeof__(cudaMallocAsync) cudaMallocAsync_ptsz;
extern __typeof__(cudaMallocFromPoolAsync) cudaMallocFromPoolAsync_ptsz;
extern __typeof__(cudaMemPrefetchAsync) cudaMemPrefetchAsync_ptsz;
extern __typeof__(cudaMemcpy) cudaMemcpy_ptds;
extern __typeof__(cudaMemcpy2D) cudaMemcpy2D_ptds;
extern __typeof__(cudaMemcpy2DArrayToArray) cudaMemcpy2DArrayToArray_ptds;
extern __typeof__(cudaMemcpy2DAsync) cudaMemcpy2DAsync_ptsz;
extern __typeof__(cudaMemcpy2DFromArray) cudaMemcpy2DFromArray_ptds;
extern __typeof__(cudaMemcpy2DFromArrayAsync) cudaMemcpy2DFromArrayAsync_ptsz;
extern __typeof__(cudaMemcpy2DToArray) cudaMemcpy2DToArray_ptds;
extern __typeof__(cudaMemcpy2DToArrayAsync) cudaMemcpy2DToArrayAsync_ptsz;
extern __typeof__(cudaMemcpy3D) cudaMemcpy3D_ptds;
extern __typeof__(cudaMemcpy3DAsync) cudaMemcpy3DAsync_ptsz;
extern __typeof__(cudaMemcpy3DBatchAsync) cudaMemcpy3DBatchAsync_ptsz;
extern __typeof__(cudaMemcpy3DPeer) cudaMemcpy3DPeer_ptds;
extern __typeof__(cudaMemcpy3DPeerAsync) cudaMemcpy3DPeerAsync_ptsz;
extern __typeof__(cudaMemcpyArrayToArray) cudaMemcpyArrayToArray_ptds;
extern __typeof__(cudaMemcpyAsync) cudaMemcpyAsync_ptsz;
extern __typeof__(cudaMemcpyBatchAsync) cudaMemcpyBatchAsync_ptsz;
extern __typeof__(cudaMemcpyFromArray) cudaMemcpyFromArray_ptds;
extern __typeof__(cudaMemcpyFromArrayAsync) cudaMemcpyFromArrayAsync_ptsz;
extern __typeof__(cudaMemcpyFromSymbol) cudaMemcpyFromSymbol_ptds;
extern __typeof__(cudaMemcpyFromSymbolAsync) cudaMemcpyFromSymbolAsync_ptsz;
extern __typeof__(cudaMemcpyToArray) cudaMemcpyToArray_ptds;
extern __typeof__(cudaMemcpyToArrayAsync) cudaMemcpyToArrayAsync_ptsz;
extern __typeof__(cudaMemcpyToSymbol) cudaMemcpyToSymbol_ptds;
extern __typeof__(cudaMemcpyToSymbolAsync) cudaMemcpyToSymbolAsync_ptsz;
extern __typeof__(cudaMemset) cudaMemset_ptds;
extern __typeof__(cudaMemset2D) cudaMemset2D_ptds;
extern __typeof__(cudaMemset2DAsync) cudaMemset2DAsync_ptsz;
extern __typeof__(cudaMemset3D) cudaMemset3D_ptds;
extern __typeof__(cudaMemset3DAsync) cudaMemset3DAsync_ptsz;
extern __typeof__(cudaMemsetAsync) cudaMemsetAsync_ptsz;
extern __typeof__(cudaSignalExternalSemaphoresAsync) cudaSignalExternalSemaphoresAsync_ptsz;
extern __typeof__(cudaStreamAddCallback) cudaStreamAddCallback_ptsz;
extern __typeof__(cudaStreamAttachMemAsync) cudaStreamAttachMemAsync_ptsz;
extern __typeof__(cudaStreamBeginCapture) cudaStreamBeginCapture_ptsz;
extern __typeof__(cudaStreamBeginCaptureToGraph) cudaStreamBeginCaptureToGraph_ptsz;
extern __typeof__(cudaStreamCopyAttributes) cudaStreamCopyAttributes_ptsz;
extern __typeof__(cudaStreamEndCapture) cudaStreamEndCapture_ptsz;
extern __typeof__(cudaStreamGetCaptureInfo) cudaStreamGetCaptureInfo_ptsz;
extern __typeof__(cudaStreamGetDevice) cudaStreamGetDevice_ptsz;
extern __typeof__(cudaStreamGetFlags) cudaStreamGetFlags_ptsz;
extern __typeof__(cudaStreamGetId) cudaStreamGetId_ptsz;
extern __typeof__(cudaStreamGetPriority) cudaStreamGetPriority_ptsz;
extern __typeof__(cudaStreamIsCapturing) cudaStreamIsCapturing_ptsz;
extern __typeof__(cudaStreamQuery) cudaStreamQuery_ptsz;
extern __typeof__(cudaStreamSynchronize) cudaStreamSynchronize_ptsz;
extern __typeof__(cudaStreamWaitEvent) cudaStreamWaitEvent_ptsz;
extern __typeof__(cudaWaitExternalSemaphoresAsync) cudaWaitExternalSemaphoresAsync_ptsz;
#if SIM_CUDART_MAJOR >= 13
extern __typeof__(cudaMemDiscardAndPrefetchBatchAsync) cudaMemDiscardAndPrefetchBatchAsync_ptsz;
extern __typeof__(cudaMemDiscardBatchAsync) cudaMemDiscardBatchAsync_ptsz;
extern __typeof__(cudaMemPrefetchBatchAsync) cudaMemPrefetchBatchAsync_ptsz;
#endif
#ifdef __cplusplus
}
#endif

#define cudaEventRecord                     cudaEventRecord_ptsz
#define cudaEventRecordWithFlags            cudaEventRecordWithFlags_ptsz
#define cudaFreeAsync                       cudaFreeAsync_ptsz
#define cudaGetDriverEntryPoint             cudaGetDriverEntryPoint_ptsz
#define cudaGetDriverEntryPointByVersion    cudaGetDriverEntryPointByVersion_ptsz
#define cudaGraphInstantiateWithParams      cudaGraphInstantiateWithParams_ptsz
#define cudaGraphLaunch                     cudaGraphLaunch_ptsz
#define cudaGraphUpload                     cudaGraphUpload_ptsz
#define cudaLaunchCooperativeKernel         cudaLaunchCooperativeKernel_ptsz
#define cudaLaunchHostFunc                  cudaLaunchHostFunc_ptsz
#define cudaLaunchKernel                    cudaLaunchKernel_ptsz
#define cudaLaunchKernelExC                 cudaLaunchKernelExC_ptsz
#define cudaMallocAsync                     cudaMallocAsync_ptsz
#define cudaMallocFromPoolAsync             cudaMallocFromPoolAsync_ptsz
#define cudaMemDiscardAndPrefetchBatchAsync cudaMemDiscardAndPrefetchBatchAsync_ptsz
#define cudaMemDiscardBatchAsync            cudaMemDiscardBatchAsync_ptsz
#define cudaMemPrefetchAsync                cudaMemPrefetchAsync_ptsz
#define cudaMemPrefetchBatchAsync           cudaMemPrefetchBatchAsync_ptsz
#define cudaMemcpy                          cudaMemcpy_ptds
#define cudaMemcpy2D                        cudaMemcpy2D_ptds
#define cudaMemcpy2DArrayToArray            cudaMemcpy2DArrayToArray_ptds
#define cudaMemcpy2DAsync                   cudaMemcpy2DAsync_ptsz
#define cudaMemcpy2DFromArray               cudaMemcpy2DFromArray_ptds
#define cudaMemcpy2DFromArrayAsync          cudaMemcpy2DFromArrayAsync_ptsz
#define cudaMemcpy2DToArray                 cudaMemcpy2DToArray_ptds
#define cudaMemcpy2DToArrayAsync            cudaMemcpy2DToArrayAsync_ptsz
#define cudaMemcpy3D                        cudaMemcpy3D_ptds
#define cudaMemcpy3DAsync                   cudaMemcpy3DAsync_ptsz
#define cudaMemcpy3DBatchAsync              cudaMemcpy3DBatchAsync_ptsz
#define cudaMemcpy3DPeer                    cudaMemcpy3DPeer_ptds
#define cudaMemcpy3DPeerAsync               cudaMemcpy3DPeerAsync_ptsz
#define cudaMemcpyArrayToArray              cudaMemcpyArrayToArray_ptds
#define cudaMemcpyAsync                     cudaMemcpyAsync_ptsz
#define cudaMemcpyBatchAsync                cudaMemcpyBatchAsync_ptsz
#define cudaMemcpyFromArray                 cudaMemcpyFromArray_ptds
#define cudaMemcpyFromArrayAsync            cudaMemcpyFromArrayAsync_ptsz
#define cudaMemcpyFromSymbol                cudaMemcpyFromSymbol_ptds
#define cudaMemcpyFromSymbolAsync           cudaMemcpyFromSymbolAsync_ptsz
#define cudaMemcpyToArray                   cudaMemcpyToArray_ptds
#define cudaMemcpyToArrayAsync              cudaMemcpyToArrayAsync_ptsz
#define cudaMemcpyToSymbol                  cudaMemcpyToSymbol_ptds
#define cudaMemcpyToSymbolAsync             cudaMemcpyToSymbolAsync_ptsz
#define cudaMemset                          cudaMemset_ptds
#define cudaMemset2D                        cudaMemset2D_ptds
#define cudaMemset2DAsync                   cudaMemset2DAsync_ptsz
#define cudaMemset3D                        cudaMemset3D_ptds
#define cudaMemset3DAsync                   cudaMemset3DAsync_ptsz
#define cudaMemsetAsync                     cudaMemsetAsync_ptsz
#define cudaSignalExternalSemaphoresAsync   cudaSignalExternalSemaphoresAsync_ptsz
#define cudaStreamAddCallback               cudaStreamAddCallback_ptsz
#define cudaStreamAttachMemAsync            cudaStreamAttachMemAsync_ptsz
#define cudaStreamBeginCapture              cudaStreamBeginCapture_ptsz
#define cudaStreamBeginCaptureToGraph       cudaStreamBeginCaptureToGraph_ptsz
#define cudaStreamCopyAttributes            cudaStreamCopyAttributes_ptsz
#define cudaStreamEndCapture                cudaStreamEndCapture_ptsz
#define cudaStreamGetCaptureInfo            cudaStreamGetCaptureInfo_ptsz
#define cudaStreamGetDevice                 cudaStreamGetDevice_ptsz
#define cudaStreamGetFlags                  cudaStreamGetFlags_ptsz
#define cudaStreamGetId                     cudaStreamGetId_ptsz
#define cudaStreamGetPriority               cudaStreamGetPriority_ptsz
#define cudaStreamIsCapturing               cudaStreamIsCapturing_ptsz
#define cudaStreamQuery                     cudaStreamQuery_ptsz
#define cudaStreamSynchronize               cudaStreamSynchronize_ptsz
#define cudaStreamWaitEvent                 cudaStreamWaitEvent_ptsz
#define cudaWaitExternalSemaphoresAsync     cudaWaitExternalSemaphoresAsync_ptsz

#endif

#endif

#endif
