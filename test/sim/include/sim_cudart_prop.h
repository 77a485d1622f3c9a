/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_CUDART_PROP_H
#define SIM_CUDART_PROP_H

/* cudaDeviceProp: 1032 bytes in CUDA 12, 1008 in CUDA 13, which dropped some fields. */

#if SIM_CUDART_MAJOR == 12
#define SIM_PROP12(declaration) declaration;
#else
#define SIM_PROP12(declaration)
#endif

struct cudaDeviceProp {
    char name[256];
    cudaUUID_t uuid;
    char luid[8];
    unsigned int luidDeviceNodeMask;
    size_t totalGlobalMem, sharedMemPerBlock;
    int regsPerBlock, warpSize;
    size_t memPitch;
    int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
    SIM_PROP12(int clockRate)
    size_t totalConstMem;
    int major, minor;
    size_t textureAlignment, texturePitchAlignment;
    SIM_PROP12(int deviceOverlap)
    int multiProcessorCount;
    SIM_PROP12(int kernelExecTimeoutEnabled)
    int integrated, canMapHostMemory;
    SIM_PROP12(int computeMode)
    int maxTexture1D, maxTexture1DMipmap;
    SIM_PROP12(int maxTexture1DLinear)
    int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3], maxTexture2DGather[2];
    int maxTexture3D[3], maxTexture3DAlt[3], maxTextureCubemap, maxTexture1DLayered[2];
    int maxTexture2DLayered[3], maxTextureCubemapLayered[2];
    int maxSurface1D, maxSurface2D[2], maxSurface3D[3], maxSurface1DLayered[2];
    int maxSurface2DLayered[3], maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
    size_t surfaceAlignment;
    int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID, tccDriver;
    int asyncEngineCount, unifiedAddressing;
    SIM_PROP12(int memoryClockRate)
    int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize, maxThreadsPerMultiProcessor;
    int streamPrioritiesSupported, globalL1CacheSupported, localL1CacheSupported;
    size_t sharedMemPerMultiprocessor;
    int regsPerMultiprocessor, managedMemory, isMultiGpuBoard, multiGpuBoardGroupID;
    int hostNativeAtomicSupported;
    SIM_PROP12(int singleToDoublePrecisionPerfRatio)
    int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported;
    int canUseHostPointerForRegisteredMem, cooperativeLaunch;
    SIM_PROP12(int cooperativeMultiDeviceLaunch)
    size_t sharedMemPerBlockOptin;
    int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost;
    int maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
    size_t reservedSharedMemPerBlock;
    int hostRegisterSupported, sparseCudaArraySupported, hostRegisterReadOnlySupported;
    int timelineSemaphoreInteropSupported, memoryPoolsSupported, gpuDirectRDMASupported;
    unsigned int gpuDirectRDMAFlushWritesOptions;
    int gpuDirectRDMAWritesOrdering;
    unsigned int memoryPoolSupportedHandleTypes;
    int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch;
    int unifiedFunctionPointers;
#if SIM_CUDART_MAJOR == 12
    int reserved[63];
#else
    int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
    unsigned int gpuPciDeviceID, gpuPciSubsystemID;
    int hostNumaMultinodeIpcSupported, reserved[56];
#endif
};
#undef SIM_PROP12

#endif
