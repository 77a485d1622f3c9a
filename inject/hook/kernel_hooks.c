/* SPDX-License-Identifier: Apache-2.0 */
/* The wrappers of functions with which programs register and look up kernels, and state their
 * names. */
#include "base/objects.h"
#include "cuda/cuda_abi.h"
#include "cuda/names.h"
#include "hook/hook_real.h"

#define NO_RUNTIME cudaErrorSharedObjectSymbolNotFound
#define NO_DRIVER  CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND

/* Prototypes of the exported functions; none of our headers declares CUDA's functions. */
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
    /* The name is in the module's data, and valid until the module is unregistered. */
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
        name_define(handle_of(*pKernel), name, true, handle_of(library));
    return result;
}

EXPORT cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    __typeof__(&cudaLibraryUnload) real = HOOK_REAL(cudaLibraryUnload);
    names_drop_module(handle_of(library)); /* its handle may be reused as soon as it is unloaded */
    return real ? real(library) : NO_RUNTIME;
}

EXPORT CUresult cuModuleUnload(CUmodule hmod)
{
    __typeof__(&cuModuleUnload) real = HOOK_REAL(cuModuleUnload);
    names_drop_module(handle_of(hmod));
    return real ? real(hmod) : NO_DRIVER;
}

EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
    __typeof__(&cuLibraryUnload) real = HOOK_REAL(cuLibraryUnload);
    names_drop_module(handle_of(library));
    return real ? real(library) : NO_DRIVER;
}

EXPORT CUresult cuModuleGetFunction(CUfunction *hfunc, CUmodule hmod, const char *name)
{
    __typeof__(&cuModuleGetFunction) real = HOOK_REAL(cuModuleGetFunction);
    CUresult result = real ? real(hfunc, hmod, name) : NO_DRIVER;
    if (result == CUDA_SUCCESS && hfunc)
        name_define(handle_of(*hfunc), name, true, handle_of(hmod));
    return result;
}

EXPORT CUresult cuLibraryGetKernel(CUkernel *pKernel, CUlibrary library, const char *name)
{
    __typeof__(&cuLibraryGetKernel) real = HOOK_REAL(cuLibraryGetKernel);
    CUresult result = real ? real(pKernel, library, name) : NO_DRIVER;
    if (result == CUDA_SUCCESS && pKernel)
        name_define(handle_of(*pKernel), name, true, handle_of(library));
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

/* ---- all kernels of a module at once: the driver names them ---------------------------------- */

/*
 * Names the kernels that `real`, the driver's listing function, has written to `handles`, at most
 * `count`. `counts` and `names` are related functions: the number of kernels, and the name of one.
 */
static void name_listed(const void *real, void *const *handles, unsigned count, void *module,
                        const char *counts, const char *names)
{
    struct object driver;
    unsigned there = 0;
    const char *name;
    if (!object_at((uintptr_t)real, &driver))
        return;
    CUresult (*count_of)(unsigned *, void *) = (__typeof__(count_of))object_symbol(&driver, counts);
    CUresult (*name_of)(const char **, void *) = (__typeof__(name_of))object_symbol(&driver, names);
    if (!count_of || !name_of || count_of(&there, module) != CUDA_SUCCESS)
        return;
    for (unsigned i = 0; i < count && i < there; i++)
        if (name_of(&name, handles[i]) == CUDA_SUCCESS && name)
            name_define(handle_of(handles[i]), name, true, handle_of(module));
        else
            name_forget(handle_of(handles[i]));
}

EXPORT CUresult cuModuleEnumerateFunctions(CUfunction *functions, unsigned int numFunctions,
                                           CUmodule mod)
{
    __typeof__(&cuModuleEnumerateFunctions) real = HOOK_REAL(cuModuleEnumerateFunctions);
    CUresult result = real ? real(functions, numFunctions, mod) : NO_DRIVER;
    if (result == CUDA_SUCCESS && functions)
        name_listed((const void *)real, (void *const *)functions, numFunctions, mod,
                    "cuModuleGetFunctionCount", "cuFuncGetName");
    return result;
}

EXPORT CUresult cuLibraryEnumerateKernels(CUkernel *kernels, unsigned int numKernels, CUlibrary lib)
{
    __typeof__(&cuLibraryEnumerateKernels) real = HOOK_REAL(cuLibraryEnumerateKernels);
    CUresult result = real ? real(kernels, numKernels, lib) : NO_DRIVER;
    if (result == CUDA_SUCCESS && kernels)
        name_listed((const void *)real, (void *const *)kernels, numKernels, lib,
                    "cuLibraryGetKernelCount", "cuKernelGetName");
    return result;
}
