/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_nvml.h"

#define WITH_DEVICE(ordinal, expression)                                                           \
    ({                                                                                             \
        struct sim_device *at;                                                                     \
        CUresult result = driver_device(ordinal, &at);                                             \
        result == CUDA_SUCCESS ? (expression) : result;                                            \
    })

static CUresult device_get(CUdevice *device, int ordinal)
{
    struct sim_device *at;
    CUresult result = driver_device(ordinal, &at);
    if (result == CUDA_SUCCESS && !device)
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *device = ordinal;
    return result;
}

static CUresult device_name(char *name, int bytes)
{
    if (!name || bytes <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)bytes, "Simulated GPU");
    return CUDA_SUCCESS;
}

/* The same in every process, different for each device, and for its part with SIMCUDA_MIG. */
static CUresult device_uuid(CUuuid *uuid, int number, bool may_be_part)
{
    if (!uuid)
        return CUDA_ERROR_INVALID_VALUE;
    memcpy(uuid->bytes, "simulated-gpu-00", 16);
    uuid->bytes[14] = (char)('0' + number / 10);
    uuid->bytes[15] = (char)('0' + number % 10);
    if (may_be_part && getenv("SIMCUDA_MIG"))
        memcpy(uuid->bytes + SIM_MIG_NAME_AT, SIM_MIG_NAME, sizeof SIM_MIG_NAME - 1);
    return CUDA_SUCCESS;
}

static CUresult device_luid(char *luid, unsigned *mask, int number)
{
    memset(luid, 0, 8);
    luid[0] = (char)(number + 1);
    *mask = 1;
    return CUDA_SUCCESS;
}

static const struct {
    CUdevice_attribute attribute;
    int value;
} attributes[] = {
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {CU_DEVICE_ATTRIBUTE_MAX_PITCH, 2147483647},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1980000},
    {CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 512},
    {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 132},
    {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1200000},
    {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 4096},
    {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 32 << 20},
    {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
    {CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 1024},
    {CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH, 1},
};

enum { PCI_BUS_FIRST = 0x17, ATTRIBUTE_MAX = 160 };

static CUresult device_attribute(int *value, CUdevice_attribute attribute, int number)
{
    if (!value || attribute <= 0 || (int)attribute >= ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? PCI_BUS_FIRST + number : 0;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        if (attributes[i].attribute == attribute)
            *value = attributes[i].value;
    return CUDA_SUCCESS;
}

static CUresult device_count(int *count)
{
    if (!count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = sim_config.device_count;
    return CUDA_SUCCESS;
}

static CUresult device_total(size_t *bytes)
{
    if (!bytes)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes = sim_config.memory_bytes;
    return CUDA_SUCCESS;
}

static CUresult device_properties(CUdevprop *prop, int ordinal)
{
    *prop = (CUdevprop){.maxThreadsPerBlock = 1024,
                        .maxThreadsDim = {1024, 1024, 64},
                        .maxGridSize = {2147483647, 65535, 65535},
                        .sharedMemPerBlock = 49152,
                        .totalConstantMemory = 65536,
                        .SIMDWidth = 32,
                        .memPitch = 2147483647,
                        .regsPerBlock = 65536,
                        .clockRate = 1980000,
                        .textureAlign = 512};
    return CUDA_SUCCESS;
}

static CUresult device_pci(char *id, int bytes, int number)
{
    if (!id || bytes < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)bytes, "0000:%02X:00.0", PCI_BUS_FIRST + number);
    return CUDA_SUCCESS;
}

static CUresult device_by_pci(CUdevice *device, const char *id)
{
    unsigned domain, bus, slot, function;
    if (!device || !id || sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
        return CUDA_ERROR_INVALID_VALUE;
    for (int i = 0; i < sim_config.device_count; i++)
        if (sim_devices[i].number == (int)bus - PCI_BUS_FIRST)
            return device_get(device, i);
    return CUDA_ERROR_INVALID_DEVICE;
}

static CUresult device_peer(int *can, CUdevice a, CUdevice b)
{
    struct sim_device *device;
    if (!can)
        return CUDA_ERROR_INVALID_VALUE;
    if (driver_device(a, &device) || driver_device(b, &device))
        return CUDA_ERROR_INVALID_DEVICE;
    *can = a != b;
    return CUDA_SUCCESS;
}

static CUresult device_pool(CUmemoryPool *pool, struct sim_device *device, bool is_default)
{
    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    *pool = is_default ? device->default_pool : device->current_pool;
    return CUDA_SUCCESS;
}

static CUresult device_set_pool(struct sim_device *device, CUmemoryPool pool)
{
    if (!sim_pool_has(&pool_mempools, pool) || pool->device != device)
        return CUDA_ERROR_INVALID_VALUE;
    device->current_pool = pool;
    return CUDA_SUCCESS;
}

DRV(cuDeviceGet, (CUdevice * device, int ordinal), device_get(device, ordinal), A_U(ordinal))
DRV(cuDeviceGetCount, (int *count), device_count(count))
DRV(cuDeviceGetName, (char *name, int bytes, CUdevice device),
    WITH_DEVICE(device, device_name(name, bytes)), A_U(device))
DRV(cuDeviceGetUuid, (CUuuid * uuid, CUdevice device),
    WITH_DEVICE(device, device_uuid(uuid, at->number, false)), A_U(device))
DRV(cuDeviceGetUuid_v2, (CUuuid * uuid, CUdevice device),
    WITH_DEVICE(device, device_uuid(uuid, at->number, true)), A_U(device))
DRV(cuDeviceGetLuid, (char *luid, unsigned *mask, CUdevice device),
    WITH_DEVICE(device, device_luid(luid, mask, at->number)), A_U(device))
DRV(cuDeviceTotalMem_v2, (size_t * bytes, CUdevice device),
    WITH_DEVICE(device, device_total(bytes)), A_U(device))
DRV(cuDeviceGetAttribute, (int *value, CUdevice_attribute attribute, CUdevice device),
    WITH_DEVICE(device, device_attribute(value, attribute, at->number)), A_U(attribute),
    A_U(device))
DRV(cuDeviceComputeCapability, (int *major, int *minor, CUdevice device),
    WITH_DEVICE(device, (*major = 9, *minor = 0, CUDA_SUCCESS)), A_U(device))
DRV(cuDeviceGetProperties, (CUdevprop * prop, CUdevice device),
    WITH_DEVICE(device, device_properties(prop, at->ordinal)), A_U(device))
DRV(cuDeviceGetPCIBusId, (char *id, int bytes, CUdevice device),
    WITH_DEVICE(device, device_pci(id, bytes, at->number)), A_U(device))
DRV(cuDeviceGetByPCIBusId, (CUdevice * device, const char *id), device_by_pci(device, id))
DRV(cuDeviceCanAccessPeer, (int *can, CUdevice device, CUdevice peer),
    device_peer(can, device, peer), A_U(device), A_U(peer))
DRV(cuDeviceGetP2PAttribute,
    (int *value, CUdevice_P2PAttribute attribute, CUdevice device, CUdevice peer),
    device_peer(value, device, peer), A_U(device), A_U(peer))
DRV(cuDeviceGetDefaultMemPool, (CUmemoryPool * pool, CUdevice device),
    WITH_DEVICE(device, device_pool(pool, at, true)), A_U(device), A_OUT("pool", pool))
DRV(cuDeviceGetMemPool, (CUmemoryPool * pool, CUdevice device),
    WITH_DEVICE(device, device_pool(pool, at, false)), A_U(device), A_OUT("pool", pool))
DRV(cuDeviceSetMemPool, (CUdevice device, CUmemoryPool pool),
    WITH_DEVICE(device, device_set_pool(at, pool)), A_U(device), A_X(pool))
DRV(cuDeviceGetGraphMemAttribute, (CUdevice device, int attribute, void *value),
    WITH_DEVICE(device, (*(uint64_t *)value = attribute & 1 ? at->graph_high : at->graph_used,
                         CUDA_SUCCESS)),
    A_U(device))
DRV(cuDeviceSetGraphMemAttribute, (CUdevice device, int attribute, void *value),
    WITH_DEVICE(device, (at->graph_high = at->graph_used, CUDA_SUCCESS)), A_U(device))
DRV(cuDeviceGraphMemTrim, (CUdevice device), WITH_DEVICE(device, ((void)at, CUDA_SUCCESS)),
    A_U(device))
DRV(cuFlushGPUDirectRDMAWrites, (int target, int scope), CUDA_ERROR_NOT_SUPPORTED)
