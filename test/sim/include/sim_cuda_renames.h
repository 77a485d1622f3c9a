/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDA_RENAMES_H
#define SIM_CUDA_RENAMES_H

/* The names that programs write, and the exported names of CUDA 13 that they stand for. */

#include "sim_cuda_protos.h"

#ifndef __CUDA_API_VERSION_INTERNAL

#define cuArray3DCreate                cuArray3DCreate_v2
#define cuArray3DGetDescriptor         cuArray3DGetDescriptor_v2
#define cuArrayCreate                  cuArrayCreate_v2
#define cuArrayGetDescriptor           cuArrayGetDescriptor_v2
#define cuCtxCreate                    cuCtxCreate_v4
#define cuCtxDestroy                   cuCtxDestroy_v2
#define cuCtxPopCurrent                cuCtxPopCurrent_v2
#define cuCtxPushCurrent               cuCtxPushCurrent_v2
#define cuDeviceGetUuid                cuDeviceGetUuid_v2
#define cuDevicePrimaryCtxRelease      cuDevicePrimaryCtxRelease_v2
#define cuDevicePrimaryCtxReset        cuDevicePrimaryCtxReset_v2
#define cuDevicePrimaryCtxSetFlags     cuDevicePrimaryCtxSetFlags_v2
#define cuDeviceTotalMem               cuDeviceTotalMem_v2
#define cuEventDestroy                 cuEventDestroy_v2
#define cuEventElapsedTime             cuEventElapsedTime_v2
#define cuGetProcAddress               cuGetProcAddress_v2
#define cuGraphAddDependencies         cuGraphAddDependencies_v2
#define cuGraphAddKernelNode           cuGraphAddKernelNode_v2
#define cuGraphExecKernelNodeSetParams cuGraphExecKernelNodeSetParams_v2
#define cuGraphExecUpdate              cuGraphExecUpdate_v2
#define cuGraphInstantiate             cuGraphInstantiateWithFlags
#define cuGraphKernelNodeGetParams     cuGraphKernelNodeGetParams_v2
#define cuGraphKernelNodeSetParams     cuGraphKernelNodeSetParams_v2
#define cuIpcOpenMemHandle             cuIpcOpenMemHandle_v2
#define cuMemAdvise                    cuMemAdvise_v2
#define cuMemAlloc                     cuMemAlloc_v2
#define cuMemAllocHost                 cuMemAllocHost_v2
#define cuMemAllocPitch                cuMemAllocPitch_v2
#define cuMemFree                      cuMemFree_v2
#define cuMemGetAddressRange           cuMemGetAddressRange_v2
#define cuMemGetInfo                   cuMemGetInfo_v2
#define cuMemHostGetDevicePointer      cuMemHostGetDevicePointer_v2
#define cuMemHostRegister              cuMemHostRegister_v2
#define cuModuleGetGlobal              cuModuleGetGlobal_v2
#define cuStreamDestroy                cuStreamDestroy_v2

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM

#ifdef __cplusplus
extern "C" {
#endif
extern __typeof__(cuMemBatchDecompressAsync) cuMemBatchDecompressAsync_ptsz;
extern __typeof__(cuMemDiscardAndPrefetchBatchAsync) cuMemDiscardAndPrefetchBatchAsync_ptsz;
extern __typeof__(cuMemDiscardBatchAsync) cuMemDiscardBatchAsync_ptsz;
extern __typeof__(cuMemPrefetchAsync_v2) cuMemPrefetchAsync_v2_ptsz;
extern __typeof__(cuMemPrefetchBatchAsync) cuMemPrefetchBatchAsync_ptsz;
extern __typeof__(cuMemcpy2D_v2) cuMemcpy2D_v2_ptds;
extern __typeof__(cuMemcpy2DAsync_v2) cuMemcpy2DAsync_v2_ptsz;
extern __typeof__(cuMemcpy2DUnaligned_v2) cuMemcpy2DUnaligned_v2_ptds;
extern __typeof__(cuMemcpy3D_v2) cuMemcpy3D_v2_ptds;
extern __typeof__(cuMemcpy3DAsync_v2) cuMemcpy3DAsync_v2_ptsz;
extern __typeof__(cuMemcpy3DBatchAsync_v2) cuMemcpy3DBatchAsync_v2_ptsz;
extern __typeof__(cuMemcpyAtoA_v2) cuMemcpyAtoA_v2_ptds;
extern __typeof__(cuMemcpyAtoD_v2) cuMemcpyAtoD_v2_ptds;
extern __typeof__(cuMemcpyAtoH_v2) cuMemcpyAtoH_v2_ptds;
extern __typeof__(cuMemcpyAtoHAsync_v2) cuMemcpyAtoHAsync_v2_ptsz;
extern __typeof__(cuMemcpyBatchAsync_v2) cuMemcpyBatchAsync_v2_ptsz;
extern __typeof__(cuMemcpyDtoA_v2) cuMemcpyDtoA_v2_ptds;
extern __typeof__(cuMemcpyDtoD_v2) cuMemcpyDtoD_v2_ptds;
extern __typeof__(cuMemcpyDtoDAsync_v2) cuMemcpyDtoDAsync_v2_ptsz;
extern __typeof__(cuMemcpyDtoH_v2) cuMemcpyDtoH_v2_ptds;
extern __typeof__(cuMemcpyDtoHAsync_v2) cuMemcpyDtoHAsync_v2_ptsz;
extern __typeof__(cuMemcpyHtoA_v2) cuMemcpyHtoA_v2_ptds;
extern __typeof__(cuMemcpyHtoAAsync_v2) cuMemcpyHtoAAsync_v2_ptsz;
extern __typeof__(cuMemcpyHtoD_v2) cuMemcpyHtoD_v2_ptds;
extern __typeof__(cuMemcpyHtoDAsync_v2) cuMemcpyHtoDAsync_v2_ptsz;
extern __typeof__(cuMemsetD16_v2) cuMemsetD16_v2_ptds;
extern __typeof__(cuMemsetD2D16_v2) cuMemsetD2D16_v2_ptds;
extern __typeof__(cuMemsetD2D32_v2) cuMemsetD2D32_v2_ptds;
extern __typeof__(cuMemsetD2D8_v2) cuMemsetD2D8_v2_ptds;
extern __typeof__(cuMemsetD32_v2) cuMemsetD32_v2_ptds;
extern __typeof__(cuMemsetD8_v2) cuMemsetD8_v2_ptds;
extern __typeof__(cuStreamBatchMemOp_v2) cuStreamBatchMemOp_v2_ptsz;
extern __typeof__(cuStreamBeginCapture_v2) cuStreamBeginCapture_v2_ptsz;
extern __typeof__(cuStreamGetCaptureInfo_v3) cuStreamGetCaptureInfo_v3_ptsz;
extern __typeof__(cuStreamUpdateCaptureDependencies_v2) cuStreamUpdateCaptureDependencies_v2_ptsz;
extern __typeof__(cuStreamWaitValue32_v2) cuStreamWaitValue32_v2_ptsz;
extern __typeof__(cuStreamWaitValue64_v2) cuStreamWaitValue64_v2_ptsz;
extern __typeof__(cuStreamWriteValue32_v2) cuStreamWriteValue32_v2_ptsz;
extern __typeof__(cuStreamWriteValue64_v2) cuStreamWriteValue64_v2_ptsz;
#ifdef __cplusplus
}
#endif

#define cuMemBatchDecompressAsync         cuMemBatchDecompressAsync_ptsz
#define cuMemDiscardAndPrefetchBatchAsync cuMemDiscardAndPrefetchBatchAsync_ptsz
#define cuMemDiscardBatchAsync            cuMemDiscardBatchAsync_ptsz
#define cuMemPrefetchAsync                cuMemPrefetchAsync_v2_ptsz
#define cuMemPrefetchBatchAsync           cuMemPrefetchBatchAsync_ptsz
#define cuMemcpy2D                        cuMemcpy2D_v2_ptds
#define cuMemcpy2DAsync                   cuMemcpy2DAsync_v2_ptsz
#define cuMemcpy2DUnaligned               cuMemcpy2DUnaligned_v2_ptds
#define cuMemcpy3D                        cuMemcpy3D_v2_ptds
#define cuMemcpy3DAsync                   cuMemcpy3DAsync_v2_ptsz
#define cuMemcpy3DBatchAsync              cuMemcpy3DBatchAsync_v2_ptsz
#define cuMemcpyAtoA                      cuMemcpyAtoA_v2_ptds
#define cuMemcpyAtoD                      cuMemcpyAtoD_v2_ptds
#define cuMemcpyAtoH                      cuMemcpyAtoH_v2_ptds
#define cuMemcpyAtoHAsync                 cuMemcpyAtoHAsync_v2_ptsz
#define cuMemcpyBatchAsync                cuMemcpyBatchAsync_v2_ptsz
#define cuMemcpyDtoA                      cuMemcpyDtoA_v2_ptds
#define cuMemcpyDtoD                      cuMemcpyDtoD_v2_ptds
#define cuMemcpyDtoDAsync                 cuMemcpyDtoDAsync_v2_ptsz
#define cuMemcpyDtoH                      cuMemcpyDtoH_v2_ptds
#define cuMemcpyDtoHAsync                 cuMemcpyDtoHAsync_v2_ptsz
#define cuMemcpyHtoA                      cuMemcpyHtoA_v2_ptds
#define cuMemcpyHtoAAsync                 cuMemcpyHtoAAsync_v2_ptsz
#define cuMemcpyHtoD                      cuMemcpyHtoD_v2_ptds
#define cuMemcpyHtoDAsync                 cuMemcpyHtoDAsync_v2_ptsz
#define cuMemsetD16                       cuMemsetD16_v2_ptds
#define cuMemsetD2D16                     cuMemsetD2D16_v2_ptds
#define cuMemsetD2D32                     cuMemsetD2D32_v2_ptds
#define cuMemsetD2D8                      cuMemsetD2D8_v2_ptds
#define cuMemsetD32                       cuMemsetD32_v2_ptds
#define cuMemsetD8                        cuMemsetD8_v2_ptds
#define cuStreamBatchMemOp                cuStreamBatchMemOp_v2_ptsz
#define cuStreamBeginCapture              cuStreamBeginCapture_v2_ptsz
#define cuStreamGetCaptureInfo            cuStreamGetCaptureInfo_v3_ptsz
#define cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_v2_ptsz
#define cuStreamWaitValue32               cuStreamWaitValue32_v2_ptsz
#define cuStreamWaitValue64               cuStreamWaitValue64_v2_ptsz
#define cuStreamWriteValue32              cuStreamWriteValue32_v2_ptsz
#define cuStreamWriteValue64              cuStreamWriteValue64_v2_ptsz

#else

#define cuMemPrefetchAsync                cuMemPrefetchAsync_v2
#define cuMemcpy2D                        cuMemcpy2D_v2
#define cuMemcpy2DAsync                   cuMemcpy2DAsync_v2
#define cuMemcpy2DUnaligned               cuMemcpy2DUnaligned_v2
#define cuMemcpy3D                        cuMemcpy3D_v2
#define cuMemcpy3DAsync                   cuMemcpy3DAsync_v2
#define cuMemcpy3DBatchAsync              cuMemcpy3DBatchAsync_v2
#define cuMemcpyAtoA                      cuMemcpyAtoA_v2
#define cuMemcpyAtoD                      cuMemcpyAtoD_v2
#define cuMemcpyAtoH                      cuMemcpyAtoH_v2
#define cuMemcpyAtoHAsync                 cuMemcpyAtoHAsync_v2
#define cuMemcpyBatchAsync                cuMemcpyBatchAsync_v2
#define cuMemcpyDtoA                      cuMemcpyDtoA_v2
#define cuMemcpyDtoD                      cuMemcpyDtoD_v2
#define cuMemcpyDtoDAsync                 cuMemcpyDtoDAsync_v2
#define cuMemcpyDtoH                      cuMemcpyDtoH_v2
#define cuMemcpyDtoHAsync                 cuMemcpyDtoHAsync_v2
#define cuMemcpyHtoA                      cuMemcpyHtoA_v2
#define cuMemcpyHtoAAsync                 cuMemcpyHtoAAsync_v2
#define cuMemcpyHtoD                      cuMemcpyHtoD_v2
#define cuMemcpyHtoDAsync                 cuMemcpyHtoDAsync_v2
#define cuMemsetD16                       cuMemsetD16_v2
#define cuMemsetD2D16                     cuMemsetD2D16_v2
#define cuMemsetD2D32                     cuMemsetD2D32_v2
#define cuMemsetD2D8                      cuMemsetD2D8_v2
#define cuMemsetD32                       cuMemsetD32_v2
#define cuMemsetD8                        cuMemsetD8_v2
#define cuStreamBatchMemOp                cuStreamBatchMemOp_v2
#define cuStreamBeginCapture              cuStreamBeginCapture_v2
#define cuStreamGetCaptureInfo            cuStreamGetCaptureInfo_v3
#define cuStreamUpdateCaptureDependencies cuStreamUpdateCaptureDependencies_v2
#define cuStreamWaitValue32               cuStreamWaitValue32_v2
#define cuStreamWaitValue64               cuStreamWaitValue64_v2
#define cuStreamWriteValue32              cuStreamWriteValue32_v2
#define cuStreamWriteValue64              cuStreamWriteValue64_v2

#endif

#endif

#endif
