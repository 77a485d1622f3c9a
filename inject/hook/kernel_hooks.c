/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of the calls by which programs register and look up kernels: they state the names.
 */
#include "cuda/cuda_abi.h"
#include "cuda/names.h"
#include "hook/hook_real.h"

#define NO_RUNTIME cudaErrorSharedObjectSymbolNotFound
#define NO_DRIVER  CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND

/* Prototypes of what is exported: no header of ours declares CUDA's functions. */
#define HOOK(symbol, domain, proc, returns, params) EXPORT returns symbol params;
#include "api/api.def"

static uint64_t handle_of(const void *pointer)
{
    return (uint64_t)(uintptr_t)pointer;
}

EXPORT void __cudaRegisterFunction(void **fatCubinHandle, const char *hostFun, char *deviceFun,
                                   const char *deviceName, int thread_limit, uint3 *tid, uint3 *bid,
                                   dim3 *bDim, dim3 *gDim, int *wSize)
{
    __typeof__(&__cudaRegisterFunction) real = HOOK_REAL(__cudaRegisterFunction);
    /* The name lies in the module's own data, and stays until it unregisters. */
    name_define(handle_of(hostFun), deviceName, false, handle_of(fatCubinHandle));
    if (real)
        real(fatCubinHandle, hostFun, deviceFun, deviceName, thread_limit, tid, bid, bDim, gDim,
             wSize);
}

EXPORT void __cudaUnregisterFatBinary(void **fatCubinHandle)
{
    __typeof__(&__cudaUnregisterFatBinary) real = HOOK_REAL(__cudaUnregisterFatBinary);
    names_drop_module(handle_of(fatCubinHandle));
    if (real)
        real(fatCubinHandle);
}

EXPORT cudaError_t __cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    __typeof__(&__cudaGetKernel) real = HOOK_REAL(__cudaGetKernel);
    cudaError_t result = real ? real(kernelPtr, entryFuncAddr) : NO_RUNTIME;
    if (result == cudaSuccess && kernelPtr)
        name_alias(handle_of(*kernelPtr), handle_of(entryFuncAddr));
    return result;
}

EXPORT cudaError_t cudaGetKernel(cudaKernel_t *kernelPtr, const void *entryFuncAddr)
{
    __typeof__(&cudaGetKernel) real = HOOK_REAL(cudaGetKernel);
    cudaError_t result = real ? real(kernelPtr, entryFuncAddr) : NO_RUNTIME;
    if (result == cudaSuccess && kernelPtr)
        name_alias(handle_of(*kernelPtr), handle_of(entryFuncAddr));
    return result;
}

EXPORT cudaError_t cudaGetFuncBySymbol(cudaFunction_t *functionPtr, const void *symbolPtr)
{
    __typeof__(&cudaGetFuncBySymbol) real = HOOK_REAL(cudaGetFuncBySymbol);
    cudaError_t result = real ? real(functionPtr, symbolPtr) : NO_RUNTIME;
    if (result == cudaSuccess && functionPtr)
        name_alias(handle_of(*functionPtr), handle_of(symbolPtr));
    return result;
}

EXPORT cudaError_t cudaLibraryGetKernel(cudaKernel_t *pKernel, cudaLibrary_t library,
                                        const char *name)
{
    __typeof__(&cudaLibraryGetKernel) real = HOOK_REAL(cudaLibraryGetKernel);
    cudaError_t result = real ? real(pKernel, library, name) : NO_RUNTIME;
    if (result == cudaSuccess && pKernel)
        name_define(handle_of(*pKernel), name, true, 0);
    return result;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    __typeof__(&cuModuleGetFunction) real = HOOK_REAL(cuModuleGetFunction);
    CUresult result = real ? real(hfunc, hmod, name) : NO_DRIVER;
    if (result == CUDA_SUCCESS && hfunc)
        name_define(handle_of(*hfunc), name, true, 0);
    return result;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    __typeof__(&cuLibraryGetKernel) real = HOOK_REAL(cuLibraryGetKernel);
    CUresult result = real ? real(pKernel, library, name) : NO_DRIVER;
    if (result == CUDA_SUCCESS && pKernel)
        name_define(handle_of(*pKernel), name, true, 0);
    return result;
}

EXPORT CUresult cuKernelGetFunction(CUfunction *pFunc, CUkernel kernel)
{
    __typeof__(&cuKernelGetFunction) real = HOOK_REAL(cuKernelGetFunction);
    CUresult result = real ? real(pFunc, kernel) : NO_DRIVER;
    if (result == CUDA_SUCCESS && pFunc)
        name_alias(handle_of(*pFunc), handle_of(kernel));
    return result;
}
