/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "sim_driver.h"
#include "sim_memory_kinds.h"

/* What can be asked about a pointer, and advice about memory, which changes nothing here. */

static CUresult attribute_get(void *value, CUpointer_attribute attribute, CUdeviceptr ptr)
{
    struct memory memory;
    if (!value)
        return CUDA_ERROR_INVALID_VALUE;
    if (!memory_find(ptr, &memory))
        return CUDA_ERROR_INVALID_VALUE;
    bool is_host = (KINDS_HOST | KINDS_REGISTERED) & 1u << memory.kind;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: *(CUcontext *)value = memory.context; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)value = is_host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
        break;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: *(CUdeviceptr *)value = ptr; break;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        if (!is_host && memory.kind != MEMORY_MANAGED)
            return CUDA_ERROR_INVALID_VALUE;
        *(void **)value = (void *)(uintptr_t)ptr;
        break;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: *(uint64_t *)value = memory.id; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = memory.kind == MEMORY_MANAGED; break;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = memory.device->ordinal; break;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: *(CUdeviceptr *)value = memory.base; break;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: *(size_t *)value = memory.bytes; break;
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE: *(int *)value = 1; break;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: *(unsigned *)value = 0; break;
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE: *(CUmemoryPool *)value = memory.pool; break;
    default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

/* The plural form answers zeros for a pointer that is not ours. */
static CUresult attributes_get(unsigned count, const CUpointer_attribute *attributes, void **values,
                               CUdeviceptr ptr)
{
    struct memory memory;
    if (!attributes || !values || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    bool known = memory_find(ptr, &memory);
    for (unsigned i = 0; i < count; i++) {
        bool is_wide = attributes[i] == CU_POINTER_ATTRIBUTE_CONTEXT ||
                       attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_POINTER ||
                       attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER;
        if (!known && attributes[i] == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL)
            *(int *)values[i] = -2;
        else if (!known || attribute_get(values[i], attributes[i], ptr) != CUDA_SUCCESS)
            memset(values[i], 0, is_wide ? 8 : 4);
    }
    return CUDA_SUCCESS;
}

static CUresult advise(CUdeviceptr ptr, size_t bytes)
{
    struct memory memory;
    if (!memory_find(ptr, &memory) || memory.kind != MEMORY_MANAGED || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

static CUresult range_get(void *data, size_t data_bytes, CUdeviceptr ptr)
{
    struct memory memory;
    if (!data || !memory_find(ptr, &memory) || memory.kind != MEMORY_MANAGED)
        return CUDA_ERROR_INVALID_VALUE;
    memset(data, 0, data_bytes);
    return CUDA_SUCCESS;
}

DRV(cuPointerGetAttribute, (void *value, CUpointer_attribute attribute, CUdeviceptr ptr),
    attribute_get(value, attribute, ptr), A_U(attribute), A_X(ptr))
DRV(cuPointerGetAttributes,
    (unsigned count, CUpointer_attribute *attributes, void **values, CUdeviceptr ptr),
    attributes_get(count, attributes, values, ptr), A_U(count), A_X(ptr))
DRV(cuPointerSetAttribute, (const void *value, CUpointer_attribute attribute, CUdeviceptr ptr),
    CUDA_SUCCESS, A_U(attribute), A_X(ptr))
DRV(cuMemAdvise, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUdevice device),
    advise(ptr, bytes), A_X(ptr), A_U(bytes), A_U(advice))
DRV(cuMemAdvise_v2, (CUdeviceptr ptr, size_t bytes, CUmem_advise advice, CUmemLocation location),
    advise(ptr, bytes), A_X(ptr), A_U(bytes), A_U(advice))
DRV(cuMemRangeGetAttribute,
    (void *data, size_t data_bytes, CUmem_range_attribute attribute, CUdeviceptr ptr, size_t bytes),
    range_get(data, data_bytes, ptr), A_X(ptr), A_U(bytes))
