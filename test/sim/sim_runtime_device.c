/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <string.h>

/* Devices: what can be asked and set. */

static CUresult attribute(CUdevice_attribute which, int device)
{
    int value = 0;
    D(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)(&value, which, device);
    return (CUresult)value;
}

#define ATTR(name) (int)attribute(CU_DEVICE_ATTRIBUTE_##name, device)

static CUresult properties(struct cudaDeviceProp *prop, int device)
{
    CUuuid uuid;
    size_t total = 0;
    CUdevice handle;
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult result = D(cuDeviceGet, cuDeviceGet, 2000)(&handle, device);
    if (result != CUDA_SUCCESS)
        return result;
    memset(prop, 0, sizeof *prop);
    D(cuDeviceGetName, cuDeviceGetName, 2000)(prop->name, sizeof prop->name, device);
    D(cuDeviceGetUuid_v2, cuDeviceGetUuid, 9020)(&uuid, device);
    D(cuDeviceTotalMem_v2, cuDeviceTotalMem, 3020)(&total, device);
    memcpy(&prop->uuid, &uuid, sizeof uuid);
    prop->totalGlobalMem = total;
    prop->sharedMemPerBlock = (size_t)ATTR(MAX_SHARED_MEMORY_PER_BLOCK);
    prop->regsPerBlock = ATTR(MAX_REGISTERS_PER_BLOCK);
    prop->warpSize = ATTR(WARP_SIZE);
    prop->memPitch = (size_t)ATTR(MAX_PITCH);
    prop->maxThreadsPerBlock = ATTR(MAX_THREADS_PER_BLOCK);
    prop->maxThreadsDim[0] = ATTR(MAX_BLOCK_DIM_X);
    prop->maxThreadsDim[1] = ATTR(MAX_BLOCK_DIM_Y);
    prop->maxThreadsDim[2] = ATTR(MAX_BLOCK_DIM_Z);
    prop->maxGridSize[0] = ATTR(MAX_GRID_DIM_X);
    prop->maxGridSize[1] = ATTR(MAX_GRID_DIM_Y);
    prop->maxGridSize[2] = ATTR(MAX_GRID_DIM_Z);
    prop->totalConstMem = (size_t)ATTR(TOTAL_CONSTANT_MEMORY);
    prop->major = ATTR(COMPUTE_CAPABILITY_MAJOR);
    prop->minor = ATTR(COMPUTE_CAPABILITY_MINOR);
    prop->textureAlignment = (size_t)ATTR(TEXTURE_ALIGNMENT);
    prop->multiProcessorCount = ATTR(MULTIPROCESSOR_COUNT);
    prop->canMapHostMemory = ATTR(CAN_MAP_HOST_MEMORY);
    prop->concurrentKernels = ATTR(CONCURRENT_KERNELS);
    prop->pciBusID = ATTR(PCI_BUS_ID);
    prop->asyncEngineCount = ATTR(ASYNC_ENGINE_COUNT);
    prop->unifiedAddressing = ATTR(UNIFIED_ADDRESSING);
    prop->memoryBusWidth = ATTR(GLOBAL_MEMORY_BUS_WIDTH);
    prop->l2CacheSize = ATTR(L2_CACHE_SIZE);
    prop->maxThreadsPerMultiProcessor = ATTR(MAX_THREADS_PER_MULTIPROCESSOR);
    prop->streamPrioritiesSupported = ATTR(STREAM_PRIORITIES_SUPPORTED);
    prop->sharedMemPerMultiprocessor = (size_t)ATTR(MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
    prop->regsPerMultiprocessor = ATTR(MAX_REGISTERS_PER_MULTIPROCESSOR);
    prop->managedMemory = ATTR(MANAGED_MEMORY);
    prop->concurrentManagedAccess = ATTR(CONCURRENT_MANAGED_ACCESS);
    prop->cooperativeLaunch = ATTR(COOPERATIVE_LAUNCH);
    prop->sharedMemPerBlockOptin = (size_t)ATTR(MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    prop->maxBlocksPerMultiProcessor = ATTR(MAX_BLOCKS_PER_MULTIPROCESSOR);
    prop->memoryPoolsSupported = ATTR(MEMORY_POOLS_SUPPORTED);
#if SIM_CUDART_MAJOR == 12
    prop->clockRate = ATTR(CLOCK_RATE);
    prop->memoryClockRate = ATTR(MEMORY_CLOCK_RATE);
#endif
    return CUDA_SUCCESS;
}

#if SIM_CUDART_MAJOR == 12
/* The structure of CUDA 11 was shorter: fill what it had. */
enum { PROP_BYTES_OLD = 728 };

static CUresult properties_old(void *prop, int device)
{
    struct cudaDeviceProp full;
    CUresult result = properties(&full, device);
    if (result == CUDA_SUCCESS)
        memcpy(prop, &full, PROP_BYTES_OLD);
    return result;
}

RT_INIT(cudaGetDeviceProperties, (struct cudaDeviceProp * prop, int device),
        properties_old(prop, device), A_U(device))
RT_INIT(cudaGetDeviceProperties_v2, (struct cudaDeviceProp * prop, int device),
        properties(prop, device), A_U(device))
#else
RT_INIT(cudaGetDeviceProperties, (struct cudaDeviceProp * prop, int device),
        properties(prop, device), A_U(device))
#endif

static CUresult choose(int *device)
{
    if (!device)
        return CUDA_ERROR_INVALID_VALUE;
    *device = 0;
    return CUDA_SUCCESS;
}

/* Without devices or a driver the count is an error and nought. */
static cudaError_t device_count(int *count)
{
    if (!count)
        return cudaErrorInvalidValue;
    *count = 0;
    cudaError_t error = runtime_ready();
    if (error == cudaSuccess)
        error = (cudaError_t)D(cuDeviceGetCount, cuDeviceGetCount, 2000)(count);
    return runtime_return(error);
}

/* Needs the peer's context: it is the primary one. */
static CUresult peer_access(int peer, bool enable)
{
    CUcontext context;
    CUresult result = D(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)(&context, peer);
    if (result != CUDA_SUCCESS)
        return result;
    result = enable ? D(cuCtxEnablePeerAccess, cuCtxEnablePeerAccess, 4000)(context, 0)
                    : D(cuCtxDisablePeerAccess, cuCtxDisablePeerAccess, 4000)(context);
    if (result == CUDA_ERROR_INVALID_CONTEXT)
        result = CUDA_ERROR_INVALID_DEVICE;
    return result;
}

RT_RAW(cudaGetDeviceCount, (int *count), device_count(count))
RT_INIT(cudaSetValidDevices, (int *devices, int count), CUDA_SUCCESS)
RT_INIT(cudaChooseDevice, (int *device, const struct cudaDeviceProp *prop), choose(device))
RT_INIT(cudaDeviceGetAttribute, (int *value, enum cudaDeviceAttr which, int device),
        D(cuDeviceGetAttribute, cuDeviceGetAttribute, 2000)(value, (CUdevice_attribute)which,
                                                            device),
        A_U(which), A_U(device))
RT_INIT(cudaDeviceGetP2PAttribute, (int *value, enum cudaDeviceP2PAttr which, int device, int peer),
        D(cuDeviceGetP2PAttribute, cuDeviceGetP2PAttribute,
          8000)(value, (CUdevice_P2PAttribute)which, device, peer),
        A_U(device), A_U(peer))
RT_INIT(cudaDeviceGetPCIBusId, (char *id, int bytes, int device),
        D(cuDeviceGetPCIBusId, cuDeviceGetPCIBusId, 4010)(id, bytes, device), A_U(device))
RT_INIT(cudaDeviceGetByPCIBusId, (int *device, const char *id),
        D(cuDeviceGetByPCIBusId, cuDeviceGetByPCIBusId, 4010)(device, id))
RT_INIT(cudaDeviceCanAccessPeer, (int *can, int device, int peer),
        D(cuDeviceCanAccessPeer, cuDeviceCanAccessPeer, 4000)(can, device, peer), A_U(device),
        A_U(peer))
RT(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), peer_access(peer, true), A_U(peer))
RT(cudaDeviceDisablePeerAccess, (int peer), peer_access(peer, false), A_U(peer))
RT(cudaDeviceGetLimit, (size_t * value, enum cudaLimit limit),
   D(cuCtxGetLimit, cuCtxGetLimit, 3010)(value, (CUlimit)limit), A_U(limit))
RT(cudaDeviceSetLimit, (enum cudaLimit limit, size_t value),
   D(cuCtxSetLimit, cuCtxSetLimit, 3010)((CUlimit)limit, value), A_U(limit), A_U(value))
RT(cudaDeviceGetCacheConfig, (enum cudaFuncCache * config),
   D(cuCtxGetCacheConfig, cuCtxGetCacheConfig, 3020)((CUfunc_cache *)config))
RT(cudaDeviceSetCacheConfig, (enum cudaFuncCache config),
   D(cuCtxSetCacheConfig, cuCtxSetCacheConfig, 3020)((CUfunc_cache)config))
RT(cudaDeviceGetSharedMemConfig, (enum cudaSharedMemConfig * config),
   D(cuCtxGetSharedMemConfig, cuCtxGetSharedMemConfig, 4020)((CUsharedconfig *)config))
RT(cudaDeviceSetSharedMemConfig, (enum cudaSharedMemConfig config),
   D(cuCtxSetSharedMemConfig, cuCtxSetSharedMemConfig, 4020)((CUsharedconfig)config))
RT(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest),
   D(cuCtxGetStreamPriorityRange, cuCtxGetStreamPriorityRange, 5050)(least, greatest))
RT(cudaCtxResetPersistingL2Cache, (void),
   D(cuCtxResetPersistingL2Cache, cuCtxResetPersistingL2Cache, 11000)())
RT_INIT(cudaDeviceGetDefaultMemPool, (cudaMemPool_t * pool, int device),
        D(cuDeviceGetDefaultMemPool, cuDeviceGetDefaultMemPool, 11020)(pool, device),
        A_OUT("pool", pool), A_U(device))
RT_INIT(cudaDeviceGetMemPool, (cudaMemPool_t * pool, int device),
        D(cuDeviceGetMemPool, cuDeviceGetMemPool, 11020)(pool, device), A_OUT("pool", pool),
        A_U(device))
RT_INIT(cudaDeviceGraphMemTrim, (int device),
        D(cuDeviceGraphMemTrim, cuDeviceGraphMemTrim, 11040)(device), A_U(device))
RT_INIT(cudaDeviceSetMemPool, (int device, cudaMemPool_t pool),
        D(cuDeviceSetMemPool, cuDeviceSetMemPool, 11020)(device, pool), A_U(device), A_X(pool))
RT(cudaProfilerStart, (void), D(cuProfilerStart, cuProfilerStart, 4000)())
RT(cudaProfilerStop, (void), D(cuProfilerStop, cuProfilerStop, 4000)())

/* A missing driver has version 0 and is no error. */
static cudaError_t driver_version(int *version)
{
    if (!version)
        return runtime_return(cudaErrorInvalidValue);
    *version = 0;
    if (runtime_ready() != cudaErrorInsufficientDriver || runtime_driver[1])
        D(cuDriverGetVersion, cuDriverGetVersion, 2020)(version);
    return cudaSuccess;
}

static cudaError_t runtime_version(int *version)
{
    if (!version)
        return runtime_return(cudaErrorInvalidValue);
    *version = CUDART_VERSION;
    return cudaSuccess;
}

RT_RAW(cudaDriverGetVersion, (int *version), driver_version(version))
RT_RAW(cudaRuntimeGetVersion, (int *version), runtime_version(version))
