/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <stdlib.h>

/* Launches, and what can be asked about kernels. */

/* The driver calls a bad launch shape an invalid value; the runtime has a name for it. */
static cudaError_t shape_check(dim3 grid, dim3 block)
{
    uint64_t threads = (uint64_t)block.x * block.y * block.z;
    if (SIM_UNLIKELY(threads == 0 || threads > 1024 || block.z > 64 || grid.x == 0 ||
                     grid.x > 0x7fffffffu || grid.y - 1 > 65534 || grid.z - 1 > 65534))
        return cudaErrorInvalidConfiguration;
    return cudaSuccess;
}

static cudaError_t launch(const void *func, dim3 grid, dim3 block, void **args, size_t shared,
                          cudaStream_t stream, int pt)
{
    CUfunction function;
    cudaError_t error = runtime_function(func, &function);
    if (SIM_UNLIKELY(error != cudaSuccess) ||
        SIM_UNLIKELY((error = shape_check(grid, block)) != cudaSuccess))
        return error;
    return (cudaError_t)D2(cuLaunchKernel, cuLaunchKernel, 4000,
                           7000)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 (unsigned)shared, stream, args, NULL);
}

static cudaError_t launch_cooperative(const void *func, dim3 grid, dim3 block, void **args,
                                      size_t shared, cudaStream_t stream, int pt)
{
    CUfunction function;
    cudaError_t error = runtime_function(func, &function);
    if (error != cudaSuccess || (error = shape_check(grid, block)) != cudaSuccess)
        return error;
    return (cudaError_t)D2(cuLaunchCooperativeKernel, cuLaunchCooperativeKernel, 9000,
                           9000)(function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
                                 (unsigned)shared, stream, args);
}

static cudaError_t launch_config(const cudaLaunchConfig_t *from, const void *func, void **args,
                                 int pt)
{
    CUfunction function;
    if (!from)
        return cudaErrorInvalidValue;
    cudaError_t error = runtime_function(func, &function);
    if (error != cudaSuccess || (error = shape_check(from->gridDim, from->blockDim)) != cudaSuccess)
        return error;
    CUlaunchConfig config = {
        .gridDimX = from->gridDim.x,
        .gridDimY = from->gridDim.y,
        .gridDimZ = from->gridDim.z,
        .blockDimX = from->blockDim.x,
        .blockDimY = from->blockDim.y,
        .blockDimZ = from->blockDim.z,
        .sharedMemBytes = (unsigned)from->dynamicSmemBytes,
        .hStream = from->stream,
        .attrs = from->attrs,
        .numAttrs = from->numAttrs,
    };
    return (cudaError_t)D2(cuLaunchKernelEx, cuLaunchKernelEx, 11060, 11060)(&config, function,
                                                                             args, NULL);
}

#define LAUNCH_ARGS(func, grid, block, bytes, queue)                                               \
    A_KS("kernel", runtime_function_name(func)), A_KX("func", func),                               \
        A_3("grid", (grid).x, (grid).y, (grid).z), A_3("block", (block).x, (block).y, (block).z),  \
        A_KU("shared", bytes), A_KX("stream", queue)

RT2(cudaLaunchKernel, _ptsz,
    (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
    launch(func, grid, block, args, shared, stream, pt),
    LAUNCH_ARGS(func, grid, block, shared, stream))
RT2(cudaLaunchCooperativeKernel, _ptsz,
    (const void *func, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
    launch_cooperative(func, grid, block, args, shared, stream, pt),
    LAUNCH_ARGS(func, grid, block, shared, stream))

static const cudaLaunchConfig_t no_config;
#define CONFIG (config ? config : &no_config)

RT2(cudaLaunchKernelExC, _ptsz, (const cudaLaunchConfig_t *config, const void *func, void **args),
    launch_config(config, func, args, pt),
    LAUNCH_ARGS(func, CONFIG->gridDim, CONFIG->blockDim, CONFIG->dynamicSmemBytes, CONFIG->stream))
RT2(cudaLaunchHostFunc, _ptsz, (cudaStream_t stream, cudaHostFn_t fn, void *data),
    D2(cuLaunchHostFunc, cuLaunchHostFunc, 10000, 10000)(stream, fn, data), A_X(stream),
    A_KX("fn", fn))

#if SIM_CUDART_MAJOR >= 13
/* What nvcc 13 puts where <<<>>> was; the library's own jump to cudaLaunchKernel is internal. */
static cudaError_t kernel_get(cudaKernel_t *kernel, const void *host)
{
    cudaError_t error = runtime_kernel(host, kernel);
    if (error == cudaSuccess)
        runtime_kernel_known(*kernel, runtime_function_name(host));
    return error;
}

RT2(__cudaLaunchKernel, _ptsz,
    (cudaKernel_t kernel, dim3 grid, dim3 block, void **args, size_t shared, cudaStream_t stream),
    launch(kernel, grid, block, args, shared, stream, pt),
    LAUNCH_ARGS(kernel, grid, block, shared, stream))
RT_INIT(__cudaGetKernel, (cudaKernel_t * kernel, const void *host), kernel_get(kernel, host),
        A_OUT("kernel", kernel), A_KX("func", host))
#endif

#if SIM_CUDART_MAJOR == 12
RT(cudaLaunchCooperativeKernelMultiDevice, (void *list, unsigned count, unsigned flags),
   cudaErrorNotSupported, A_U(count))
#endif

static cudaError_t attributes_get(struct cudaFuncAttributes *out, const void *func)
{
    CUfunction function;
    cudaError_t error = runtime_function(func, &function);
    if (error != cudaSuccess)
        return error;
    if (!out)
        return cudaErrorInvalidValue;
    int values[CU_FUNC_ATTRIBUTE_MAX] = {0};
    for (int i = 0; i <= CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT; i++)
        D(cuFuncGetAttribute, cuFuncGetAttribute, 2020)
    (&values[i], (CUfunction_attribute)i, function);
    *out = (struct cudaFuncAttributes){
        .sharedSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES],
        .constSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES],
        .localSizeBytes = (size_t)values[CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES],
        .maxThreadsPerBlock = values[CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK],
        .numRegs = values[CU_FUNC_ATTRIBUTE_NUM_REGS],
        .ptxVersion = values[CU_FUNC_ATTRIBUTE_PTX_VERSION],
        .binaryVersion = values[CU_FUNC_ATTRIBUTE_BINARY_VERSION],
        .maxDynamicSharedSizeBytes = values[CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES],
    };
    return cudaSuccess;
}

#define WITH_FUNCTION(func, call)                                                                  \
    ({                                                                                             \
        CUfunction function;                                                                       \
        cudaError_t error = runtime_function(func, &function);                                     \
        error == cudaSuccess ? (cudaError_t)(call) : error;                                        \
    })

static cudaError_t kernel_find(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    CUresult result = D(cuLibraryGetKernel, cuLibraryGetKernel, 12000)(kernel, library, name);
    if (result == CUDA_SUCCESS)
        runtime_kernel_known(*kernel, name);
    return (cudaError_t)result;
}

static cudaError_t kernel_list(cudaKernel_t *kernels, unsigned count, cudaLibrary_t library)
{
    CUresult result =
        D(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040)(kernels, count, library);
    for (unsigned i = 0; i < count && result == CUDA_SUCCESS && kernels[i]; i++) {
        const char *name;
        if (D(cuKernelGetName, cuKernelGetName, 12030)(&name, kernels[i]) == CUDA_SUCCESS)
            runtime_kernel_known(kernels[i], name);
    }
    return (cudaError_t)result;
}

static cudaError_t kernel_of_symbol(cudaKernel_t *kernel, const void *symbol)
{
    cudaError_t error = kernel ? runtime_kernel(symbol, kernel) : cudaErrorInvalidValue;
    if (error == cudaSuccess)
        runtime_kernel_known(*kernel, runtime_function_name(symbol));
    return error;
}

RT(cudaFuncGetAttributes, (struct cudaFuncAttributes * out, const void *func),
   attributes_get(out, func), A_X(func))
RT(cudaFuncSetAttribute, (const void *func, enum cudaFuncAttribute attribute, int value),
   WITH_FUNCTION(func, D(cuFuncSetAttribute, cuFuncSetAttribute,
                         9000)(function, (CUfunction_attribute)attribute, value)),
   A_X(func))
RT(cudaFuncSetCacheConfig, (const void *func, enum cudaFuncCache config),
   WITH_FUNCTION(func, D(cuFuncSetCacheConfig, cuFuncSetCacheConfig, 3000)(function,
                                                                           (CUfunc_cache)config)),
   A_X(func))
RT(cudaFuncSetSharedMemConfig, (const void *func, enum cudaSharedMemConfig config),
   WITH_FUNCTION(func, function ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE), A_X(func))
RT(cudaFuncGetName, (const char **name, const void *func),
   WITH_FUNCTION(func, D(cuFuncGetName, cuFuncGetName, 12030)(name, function)), A_X(func))
RT(cudaGetFuncBySymbol, (cudaFunction_t * out, const void *symbol),
   WITH_FUNCTION(symbol, (*out = function, CUDA_SUCCESS)), A_X(symbol))
RT(cudaGetKernel, (cudaKernel_t * kernel, const void *symbol), kernel_of_symbol(kernel, symbol),
   A_X(symbol))
RT(cudaOccupancyMaxActiveBlocksPerMultiprocessor,
   (int *blocks, const void *func, int block, size_t shared),
   WITH_FUNCTION(func, D(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                         cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                         7000)(blocks, function, block, shared, 0)),
   A_X(func))
RT(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
   (int *blocks, const void *func, int block, size_t shared, unsigned flags),
   WITH_FUNCTION(func, D(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                         cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
                         7000)(blocks, function, block, shared, flags)),
   A_X(func))
RT(cudaLibraryLoadData,
   (cudaLibrary_t * library, const void *code, enum cudaJitOption *jit, void **jit_values,
    unsigned jit_count, enum cudaLibraryOption *options, void **values, unsigned count),
   D(cuLibraryLoadData, cuLibraryLoadData, 12000)(library, code, NULL, NULL, 0, NULL, NULL, 0),
   A_OUT("library", library), A_KX("image", code))
RT(cudaLibraryLoadFromFile,
   (cudaLibrary_t * library, const char *path, enum cudaJitOption *jit, void **jit_values,
    unsigned jit_count, enum cudaLibraryOption *options, void **values, unsigned count),
   D(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000)(library, path, NULL, NULL, 0, NULL, NULL,
                                                          0),
   A_OUT("library", library), A_KS("path", path))
RT(cudaLibraryUnload, (cudaLibrary_t library), D(cuLibraryUnload, cuLibraryUnload, 12000)(library),
   A_X(library))
RT(cudaLibraryGetKernel, (cudaKernel_t * kernel, cudaLibrary_t library, const char *name),
   kernel_find(kernel, library, name), A_OUT("kernel", kernel), A_X(library), A_KS("name", name))
RT(cudaLibraryGetKernelCount, (unsigned *count, cudaLibrary_t library),
   D(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040)(count, library), A_X(library))
RT(cudaLibraryEnumerateKernels, (cudaKernel_t * kernels, unsigned count, cudaLibrary_t library),
   kernel_list(kernels, count, library), A_X(library))
RT(cudaLibraryGetGlobal, (void **ptr, size_t *bytes, cudaLibrary_t library, const char *name),
   D(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000)((CUdeviceptr *)ptr, bytes, library, name),
   A_OUT("ptr", ptr), A_X(library), A_KS("name", name))
RT(cudaLibraryGetManaged, (void **ptr, size_t *bytes, cudaLibrary_t library, const char *name),
   D(cuLibraryGetManaged, cuLibraryGetManaged, 12000)((CUdeviceptr *)ptr, bytes, library, name),
   A_OUT("ptr", ptr), A_X(library), A_KS("name", name))
