/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

/* Modules and libraries: any image that is not empty holds any function that is asked for. */

enum { MODULE_COUNT_MAX = 1 << 16, GLOBAL_BYTES = 64 << 20 };

struct sim_pool pool_modules = SIM_POOL(struct CUmod_st, MODULE_COUNT_MAX);

#define LIB(library) ((CUmodule)(library))

static CUmodule module_make(CUcontext context)
{
    CUmodule module = sim_pool_get(&pool_modules);
    if (module) {
        module->context = context;
        module->id = driver_serial();
        pthread_mutex_init(&module->lock, NULL);
    }
    return module;
}

static CUmodule module_check(CUmodule module)
{
    return sim_pool_has(&pool_modules, module) ? module : NULL;
}

/* An image that begins so names functions that are there before they are asked for. */
static void functions_declare(CUmodule module, const char *image, bool is_kernel)
{
    static const char begin[] = "functions ";
    char name[64];
    int length;
    if (!image || strncmp(image, begin, sizeof begin - 1) != 0)
        return;
    image += sizeof begin - 1;
    for (; sscanf(image, "%63s%n", name, &length) == 1; image += length)
        function_get(module, name, is_kernel);
}

static CUresult module_load(CUmodule *module, const void *image, const char *path)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!module || (!image && !path))
        return CUDA_ERROR_INVALID_VALUE;
    if (path && access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (image && *(const char *)image == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    *module = module_make(context);
    if (*module)
        functions_declare(*module, image, false);
    if (*module)
        trace_module(SIM_MODULE_LOADED, context, (*module)->id, image);
    return *module ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A library needs no context. */
static CUresult library_load(CUlibrary *library, const void *image, const char *path)
{
    if (!library || (!image && !path))
        return CUDA_ERROR_INVALID_VALUE;
    if (path && access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    if (image && *(const char *)image == 0)
        return CUDA_ERROR_INVALID_IMAGE;
    CUmodule made = module_make(NULL);
    *library = (CUlibrary)made;
    if (made)
        made->library = *library;
    if (made)
        functions_declare(made, image, true);
    if (made)
        trace_module(SIM_MODULE_LOADED, context_current_or_null(), made->id, image);
    return made ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult module_unload(CUmodule module)
{
    if (!module_check(module))
        return CUDA_ERROR_INVALID_HANDLE;
    trace_module(SIM_MODULE_UNLOAD, module->context, module->id, NULL);
    while (module->functions) {
        CUfunction function = module->functions;
        module->functions = function->next;
        free(function->name);
        function->name = NULL;
        sim_pool_put(&pool_functions, function);
    }
    while (module->globals) {
        struct sim_global *global = module->globals;
        module->globals = global->next;
        memory_free(global->address, ~0u);
        free(global->name);
        free(global);
    }
    sim_pool_put(&pool_modules, module);
    return CUDA_SUCCESS;
}

static CUresult function_find(CUfunction *function, CUmodule module, const char *name,
                              bool is_kernel)
{
    if (!function || !name)
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_check(module))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name || strncmp(name, "missing", 7) == 0)
        return CUDA_ERROR_NOT_FOUND;
    *function = function_get(module, name, is_kernel);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult function_count(unsigned *count, CUmodule module)
{
    if (!module_check(module) || !count)
        return CUDA_ERROR_INVALID_VALUE;
    *count = 0;
    pthread_mutex_lock(&module->lock);
    for (CUfunction function = module->functions; function; function = function->next)
        ++*count;
    pthread_mutex_unlock(&module->lock);
    return CUDA_SUCCESS;
}

static CUresult function_list(CUkernel *kernels, unsigned count, CUmodule module)
{
    unsigned used = 0;
    if (!module_check(module) || !kernels)
        return CUDA_ERROR_INVALID_VALUE;
    pthread_mutex_lock(&module->lock);
    for (CUfunction at = module->functions; at && used < count; at = at->next)
        kernels[used++] = (CUkernel)at;
    pthread_mutex_unlock(&module->lock);
    return CUDA_SUCCESS;
}

/* The size of a variable is in the image, which we cannot read: each gets room for a large one. */
static CUresult global_find(CUdeviceptr *ptr, size_t *bytes, CUmodule module, const char *name)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    if (!name || (!ptr && !bytes))
        return CUDA_ERROR_INVALID_VALUE;
    if (!module_check(module))
        return CUDA_ERROR_INVALID_HANDLE;
    if (!*name || strncmp(name, "missing", 7) == 0)
        return CUDA_ERROR_NOT_FOUND;
    pthread_mutex_lock(&module->lock);
    struct sim_global *global = module->globals;
    while (global && strcmp(global->name, name) != 0)
        global = global->next;
    if (!global && (global = calloc(1, sizeof *global))) {
        uint64_t address = 0;
        global->bytes = GLOBAL_BYTES;
        global->name = strdup(name);
        memory_allocate(MEMORY_GLOBAL, global->bytes, 0, NULL, &address);
        global->address = address;
        global->next = module->globals;
        module->globals = global;
    }
    pthread_mutex_unlock(&module->lock);
    if (!global || !global->address)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (ptr)
        *ptr = global->address;
    if (bytes)
        *bytes = global->bytes;
    return CUDA_SUCCESS;
}

static CUresult kernel_function(CUfunction *function, CUkernel kernel)
{
    CUcontext context;
    CUresult result = context_current(&context);
    if (result != CUDA_SUCCESS)
        return result;
    CUfunction from = function_check((CUfunction)kernel);
    if (!function || !from || !from->is_kernel)
        return CUDA_ERROR_INVALID_HANDLE;
    *function = function_get(from->module, from->name, false);
    return *function ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult library_module(CUmodule *module, CUlibrary library)
{
    if (!module || !module_check(LIB(library)))
        return CUDA_ERROR_INVALID_HANDLE;
    *module = LIB(library);
    return CUDA_SUCCESS;
}

static CUresult kernel_library(CUlibrary *library, CUkernel kernel)
{
    CUfunction function = function_check((CUfunction)kernel);
    if (!library || !function)
        return CUDA_ERROR_INVALID_HANDLE;
    *library = (CUlibrary)function->module;
    return CUDA_SUCCESS;
}

DRV(cuModuleLoad, (CUmodule * module, const char *path), module_load(module, NULL, path),
    A_OUT("module", module), A_KS("path", path))
DRV(cuModuleLoadData, (CUmodule * module, const void *image), module_load(module, image, NULL),
    A_OUT("module", module), A_X(image))
DRV(cuModuleLoadDataEx,
    (CUmodule * module, const void *image, unsigned count, CUjit_option *options, void **values),
    module_load(module, image, NULL), A_OUT("module", module), A_X(image))
DRV(cuModuleLoadFatBinary, (CUmodule * module, const void *image), module_load(module, image, NULL),
    A_OUT("module", module), A_X(image))
DRV(cuModuleUnload, (CUmodule module), module_unload(module), A_X(module))
DRV(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name),
    function_find(function, module, name, false), A_OUT("function", function), A_X(module),
    A_KS("name", name))
DRV(cuModuleGetFunctionCount, (unsigned *count, CUmodule module), function_count(count, module),
    A_X(module))
DRV(cuModuleEnumerateFunctions, (CUfunction * functions, unsigned count, CUmodule module),
    function_list((CUkernel *)functions, count, module), A_X(module))
DRV(cuModuleGetGlobal_v2, (CUdeviceptr * ptr, size_t *bytes, CUmodule module, const char *name),
    global_find(ptr, bytes, module, name), A_OUT("ptr", ptr), A_X(module), A_KS("name", name))
DRV(cuModuleGetLoadingMode, (CUmoduleLoadingMode * mode),
    mode ? (*mode = CU_MODULE_LAZY_LOADING, CUDA_SUCCESS) : CUDA_ERROR_INVALID_VALUE)
DRV(cuLibraryLoadData,
    (CUlibrary * library, const void *code, CUjit_option *jit, void **jit_values,
     unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),
    library_load(library, code, NULL), A_OUT("library", library), A_KX("image", code))
DRV(cuLibraryLoadFromFile,
    (CUlibrary * library, const char *path, CUjit_option *jit, void **jit_values,
     unsigned jit_count, CUlibraryOption *options, void **values, unsigned count),
    library_load(library, NULL, path), A_OUT("library", library), A_KS("path", path))
DRV(cuLibraryUnload, (CUlibrary library), module_unload(LIB(library)), A_X(library))
DRV(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name),
    function_find((CUfunction *)kernel, LIB(library), name, true), A_OUT("kernel", kernel),
    A_X(library), A_KS("name", name))
DRV(cuLibraryGetKernelCount, (unsigned *count, CUlibrary library),
    function_count(count, LIB(library)), A_X(library))
DRV(cuLibraryEnumerateKernels, (CUkernel * kernels, unsigned count, CUlibrary library),
    function_list(kernels, count, LIB(library)), A_X(library))
DRV(cuLibraryGetModule, (CUmodule * module, CUlibrary library), library_module(module, library),
    A_OUT("module", module), A_X(library))
DRV(cuLibraryGetGlobal, (CUdeviceptr * ptr, size_t *bytes, CUlibrary library, const char *name),
    global_find(ptr, bytes, LIB(library), name), A_OUT("ptr", ptr), A_X(library),
    A_KS("name", name))
DRV(cuLibraryGetManaged, (CUdeviceptr * ptr, size_t *bytes, CUlibrary library, const char *name),
    global_find(ptr, bytes, LIB(library), name), A_OUT("ptr", ptr), A_X(library),
    A_KS("name", name))
DRV(cuKernelGetFunction, (CUfunction * function, CUkernel kernel),
    kernel_function(function, kernel), A_OUT("function", function), A_X(kernel))
DRV(cuKernelGetLibrary, (CUlibrary * library, CUkernel kernel), kernel_library(library, kernel),
    A_X(kernel))
