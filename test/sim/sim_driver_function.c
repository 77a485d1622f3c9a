/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"

enum { FUNCTION_COUNT_MAX = 1 << 18, DYNAMIC_SHARED_MAX = 232448 };

struct sim_pool pool_functions = SIM_POOL(struct CUfunc_st, FUNCTION_COUNT_MAX);

CUfunction function_check(CUfunction function)
{
    return sim_pool_has(&pool_functions, function) ? function : NULL;
}

const char *function_name(CUfunction function)
{
    return function_check(function) ? function->name : "";
}

static uint32_t name_hash(const char *name)
{
    uint32_t hash = 2166136261u;
    while (*name)
        hash = (hash ^ (uint8_t)*name++) * 16777619u;
    return hash;
}

static CUfunction function_make(CUmodule module, const char *name, bool is_kernel)
{
    CUfunction function = sim_pool_get(&pool_functions);
    char *copy = function ? strdup(name) : NULL;
    if (!copy)
        return NULL;
    uint32_t hash = name_hash(name);
    function->is_kernel = is_kernel;
    function->module = module;
    function->name = copy;
    /* Half to one and a half times the configured time, the same for a name in every run. */
    function->duration_ns =
        sim_config.kernel_ns / 2 + (sim_config.kernel_ns ? hash % (sim_config.kernel_ns + 1) : 0);
    if (sim_config.endless && strstr(name, sim_config.endless))
        function->duration_ns = ENDLESS_NS;
    function->attributes[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK] = 1024;
    function->attributes[CU_FUNC_ATTRIBUTE_NUM_REGS] = 16 + (int)(hash % 48);
    function->attributes[CU_FUNC_ATTRIBUTE_PTX_VERSION] = 90;
    function->attributes[CU_FUNC_ATTRIBUTE_BINARY_VERSION] = 90;
    function->attributes[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES] = 49152;
    function->block[0] = function->block[1] = function->block[2] = 1;
    function->next = module->functions;
    module->functions = function;
    return function;
}

/* The same name in the same module is the same function. */
CUfunction function_get(CUmodule module, const char *name, bool is_kernel)
{
    pthread_mutex_lock(&module->lock);
    CUfunction function = module->functions;
    while (function && (strcmp(function->name, name) != 0 || function->is_kernel != is_kernel))
        function = function->next;
    if (!function)
        function = function_make(module, name, is_kernel);
    pthread_mutex_unlock(&module->lock);
    return function;
}

static CUresult attribute_get(int *value, CUfunction_attribute attribute, CUfunction function)
{
    if (!function_check(function))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!value || (unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    *value = function->attributes[attribute];
    return CUDA_SUCCESS;
}

static CUresult attribute_set(CUfunction function, CUfunction_attribute attribute, int value)
{
    if (!function_check(function))
        return CUDA_ERROR_INVALID_HANDLE;
    if ((unsigned)attribute >= CU_FUNC_ATTRIBUTE_MAX ||
        attribute < CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES ||
        (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES &&
         (value < 0 || value > DYNAMIC_SHARED_MAX)))
        return CUDA_ERROR_INVALID_VALUE;
    function->attributes[attribute] = value;
    return CUDA_SUCCESS;
}

static CUresult name_get(const char **name, CUfunction function)
{
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!function_check(function))
        return CUDA_ERROR_INVALID_HANDLE;
    *name = function->name;
    return CUDA_SUCCESS;
}

static CUresult occupancy(int *blocks, CUfunction function, int block, size_t shared)
{
    if (!function_check(function))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!blocks || block <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    int by_threads = block <= 1024 ? 2048 / block : 0;
    int by_shared = shared ? (int)(233472 / (shared + 1024)) : 32;
    *blocks = by_threads < by_shared ? by_threads : by_shared;
    *blocks = *blocks > 32 ? 32 : *blocks;
    return CUDA_SUCCESS;
}

static CUresult one(int *value, CUfunction function)
{
    if (!function_check(function) || !value)
        return CUDA_ERROR_INVALID_VALUE;
    *value = 8;
    return CUDA_SUCCESS;
}

static CUresult module_of(CUmodule *module, CUfunction function)
{
    if (!function_check(function) || !module)
        return CUDA_ERROR_INVALID_VALUE;
    *module = function->module;
    return CUDA_SUCCESS;
}

#define FN(kernel) ((CUfunction)(kernel))

DRV(cuFuncGetAttribute, (int *value, CUfunction_attribute attribute, CUfunction function),
    attribute_get(value, attribute, function), A_X(function))
DRV(cuFuncSetAttribute, (CUfunction function, CUfunction_attribute attribute, int value),
    attribute_set(function, attribute, value), A_X(function))
DRV(cuFuncSetCacheConfig, (CUfunction function, CUfunc_cache config),
    function_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE, A_X(function))
DRV(cuFuncSetSharedMemConfig, (CUfunction function, CUsharedconfig config),
    function_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE, A_X(function))
DRV(cuFuncGetName, (const char **name, CUfunction function), name_get(name, function),
    A_X(function))
DRV(cuFuncGetParamInfo, (CUfunction function, size_t index, size_t *offset, size_t *bytes),
    CUDA_ERROR_INVALID_VALUE, A_X(function))
DRV(cuFuncGetModule, (CUmodule * module, CUfunction function), module_of(module, function),
    A_X(function))
DRV(cuFuncIsLoaded, (int *state, CUfunction function),
    function_check(function) ? (*state = 1, CUDA_SUCCESS) : CUDA_ERROR_INVALID_HANDLE,
    A_X(function))
DRV(cuFuncLoad, (CUfunction function),
    function_check(function) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE, A_X(function))
DRV(cuKernelGetName, (const char **name, CUkernel kernel), name_get(name, FN(kernel)), A_X(kernel))
DRV(cuKernelGetParamInfo, (CUkernel kernel, size_t index, size_t *offset, size_t *bytes),
    CUDA_ERROR_INVALID_VALUE, A_X(kernel))
DRV(cuKernelGetAttribute,
    (int *value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device),
    attribute_get(value, attribute, FN(kernel)), A_X(kernel))
DRV(cuKernelSetAttribute,
    (CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device),
    attribute_set(FN(kernel), attribute, value), A_X(kernel))
DRV(cuKernelSetCacheConfig, (CUkernel kernel, CUfunc_cache config, CUdevice device),
    function_check(FN(kernel)) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE, A_X(kernel))
DRV(cuOccupancyMaxActiveBlocksPerMultiprocessor,
    (int *blocks, CUfunction function, int block, size_t shared),
    occupancy(blocks, function, block, shared), A_X(function))
DRV(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
    (int *blocks, CUfunction function, int block, size_t shared, unsigned flags),
    occupancy(blocks, function, block, shared), A_X(function))
DRV(cuOccupancyAvailableDynamicSMemPerBlock,
    (size_t * bytes, CUfunction function, int blocks, int block),
    function_check(function) && bytes ? (*bytes = 49152, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE,
    A_X(function))
DRV(cuOccupancyMaxPotentialClusterSize,
    (int *size, CUfunction function, const CUlaunchConfig *config), one(size, function),
    A_X(function))
DRV(cuOccupancyMaxActiveClusters, (int *count, CUfunction function, const CUlaunchConfig *config),
    one(count, function), A_X(function))
