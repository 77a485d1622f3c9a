/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/*
 * What compiled programs register: images, kernels and variables, by the address that stands for
 * them on the host. Looked up on every launch, so readers take no lock: a grown table replaces
 * the old one, which stays, and entries are never removed, only marked.
 */

struct fatbin {
    void *image;
    CUlibrary library;
};

struct registered {
    const void *host;
    const char *name;
    struct fatbin *fatbin; /* NULL for a kernel that came from a library */
    bool is_gone;
    CUkernel kernel;
    CUfunction functions[RUNTIME_DEVICE_MAX];
    size_t bytes; /* of a variable */
    void **managed;
    CUdeviceptr address[RUNTIME_DEVICE_MAX];
};

struct table {
    size_t limit; /* a power of two */
    struct registered *slots[];
};

pthread_mutex_t runtime_register_lock = PTHREAD_MUTEX_INITIALIZER;
static struct table *table;
static size_t table_count;

static size_t slot_of(const void *host, size_t limit)
{
    return ((uintptr_t)host >> 4) * 0x9e3779b97f4a7c15ull >> 32 & (limit - 1);
}

static struct registered *find(const void *host)
{
    const struct table *at = __atomic_load_n(&table, __ATOMIC_ACQUIRE);
    if (!at || !host)
        return NULL;
    for (size_t i = slot_of(host, at->limit);; i = (i + 1) & (at->limit - 1)) {
        struct registered *entry = __atomic_load_n(&at->slots[i], __ATOMIC_ACQUIRE);
        if (!entry)
            return NULL;
        if (entry->host == host)
            return __atomic_load_n(&entry->is_gone, __ATOMIC_RELAXED) ? NULL : entry;
    }
}

static void place(struct table *in, struct registered *entry)
{
    size_t i = slot_of(entry->host, in->limit);
    while (in->slots[i] && in->slots[i]->host != entry->host)
        i = (i + 1) & (in->limit - 1);
    __atomic_store_n(&in->slots[i], entry, __ATOMIC_RELEASE);
}

static void insert(struct registered *entry)
{
    if (!table || table_count * 2 >= table->limit) {
        size_t limit = table ? table->limit * 2 : 256;
        struct table *grown = calloc(1, sizeof *grown + limit * sizeof grown->slots[0]);
        if (!grown)
            return;
        grown->limit = limit;
        for (size_t i = 0; table && i < table->limit; i++)
            if (table->slots[i])
                place(grown, table->slots[i]);
        __atomic_store_n(&table, grown, __ATOMIC_RELEASE);
    }
    place(table, entry);
    table_count++;
}

static struct registered *add(const void *host, const char *name, void **handle)
{
    struct registered *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->host = host;
    entry->name = name;
    entry->fatbin = (struct fatbin *)(void *)handle;
    pthread_mutex_lock(&runtime_register_lock);
    insert(entry);
    pthread_mutex_unlock(&runtime_register_lock);
    return entry;
}

const char *runtime_function_name(const void *host)
{
    const struct registered *entry = find(host);
    return entry ? entry->name : "";
}

/* The image is loaded when the first thing in it is used. */
static CUresult fatbin_load(struct fatbin *fatbin)
{
    CUresult result = CUDA_SUCCESS;
    if (__atomic_load_n(&fatbin->library, __ATOMIC_ACQUIRE))
        return CUDA_SUCCESS;
    pthread_mutex_lock(&runtime_register_lock);
    if (!fatbin->library) {
        CUlibrary library = NULL;
        result = D(cuLibraryLoadData, cuLibraryLoadData, 12000)(&library, fatbin->image, NULL, NULL,
                                                                0, NULL, NULL, 0);
        __atomic_store_n(&fatbin->library, library, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&runtime_register_lock);
    return result;
}

static cudaError_t kernel_of(struct registered *entry, CUkernel *kernel)
{
    CUresult result = CUDA_SUCCESS;
    if (!__atomic_load_n(&entry->kernel, __ATOMIC_ACQUIRE)) {
        CUkernel made = NULL;
        result = fatbin_load(entry->fatbin);
        if (result == CUDA_SUCCESS)
            result = D(cuLibraryGetKernel, cuLibraryGetKernel, 12000)(&made, entry->fatbin->library,
                                                                      entry->name);
        if (result != CUDA_SUCCESS)
            return cudaErrorInvalidDeviceFunction;
        __atomic_store_n(&entry->kernel, made, __ATOMIC_RELEASE);
    }
    *kernel = entry->kernel;
    return cudaSuccess;
}

cudaError_t runtime_kernel(const void *host, CUkernel *kernel)
{
    struct registered *entry = find(host);
    return entry ? kernel_of(entry, kernel) : cudaErrorInvalidDeviceFunction;
}

cudaError_t runtime_function(const void *host, CUfunction *function)
{
    struct registered *entry = find(host);
    int device = runtime_device();
    if (!entry)
        return cudaErrorInvalidDeviceFunction;
    *function = __atomic_load_n(&entry->functions[device], __ATOMIC_ACQUIRE);
    if (*function)
        return cudaSuccess;
    CUkernel kernel;
    cudaError_t error = kernel_of(entry, &kernel);
    if (error != cudaSuccess)
        return error;
    CUresult result = D(cuKernelGetFunction, cuKernelGetFunction, 12000)(function, kernel);
    if (result == CUDA_SUCCESS)
        __atomic_store_n(&entry->functions[device], *function, __ATOMIC_RELEASE);
    return (cudaError_t)result;
}

/* Kernels of libraries may be launched by their handle. */
void runtime_kernel_known(CUkernel kernel, const char *name)
{
    struct registered *entry = find(kernel);
    if (!entry) {
        char *copy = strdup(name);
        entry = copy ? add(kernel, copy, NULL) : NULL;
    }
    if (entry)
        entry->kernel = kernel;
}

cudaError_t runtime_symbol(const void *host, CUdeviceptr *ptr, size_t *bytes)
{
    struct registered *entry = find(host);
    int device = runtime_device();
    size_t have;
    if (!entry || !entry->fatbin || entry->bytes == 0)
        return cudaErrorInvalidSymbol;
    CUresult result = CUDA_SUCCESS;
    if (entry->managed && !entry->address[0]) {
        /* Its memory was there before the driver: now the driver hears of it. */
        result = D(cuMemHostRegister_v2, cuMemHostRegister, 6050)(*entry->managed, entry->bytes, 0);
        for (device = RUNTIME_DEVICE_MAX - 1; device > 0; device--)
            entry->address[device] = (uintptr_t)*entry->managed;
        entry->address[0] = (uintptr_t)*entry->managed;
    } else if (!entry->address[device]) {
        result = fatbin_load(entry->fatbin);
        if (result == CUDA_SUCCESS)
            result = D(cuLibraryGetGlobal, cuLibraryGetGlobal,
                       12000)(&entry->address[device], &have, entry->fatbin->library, entry->name);
    }
    if (ptr)
        *ptr = entry->address[device];
    if (bytes)
        *bytes = entry->bytes;
    return (cudaError_t)result;
}

/* The functions that compilers call return no errors and are not part of the API: not logged. */
SIM_EXPORT void **__cudaRegisterFatBinary(void *image)
{
    struct fatbin *fatbin = calloc(1, sizeof *fatbin);
    if (fatbin)
        fatbin->image = image;
    return (void **)(void *)fatbin;
}

SIM_EXPORT void __cudaRegisterFatBinaryEnd(void **handle)
{
}

static CUlibrary fatbin_forget(struct fatbin *fatbin)
{
    pthread_mutex_lock(&runtime_register_lock);
    for (size_t i = 0; table && i < table->limit; i++)
        if (table->slots[i] && table->slots[i]->fatbin == fatbin)
            __atomic_store_n(&table->slots[i]->is_gone, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&runtime_register_lock);
    return fatbin->library;
}

/* Logged only if it reaches the driver: a program that did no CUDA must leave no log. */
SIM_EXPORT void __cudaUnregisterFatBinary(void **handle)
{
    static struct sim_symbol symbol = {.name = "__cudaUnregisterFatBinary", .layer = 'R'};
    CUlibrary library = handle ? fatbin_forget((struct fatbin *)(void *)handle) : NULL;
    struct sim_call call;
    if (!library)
        return;
    if (sim_mode != SIM_MODE_PLAIN)
        runtime_begin(&call, &symbol, NULL, 0);
    CUresult result = D(cuLibraryUnload, cuLibraryUnload, 12000)(library);
    if (sim_mode != SIM_MODE_PLAIN)
        sim_call_end(&call, (int)result);
}

SIM_EXPORT void __cudaRegisterFunction(void **handle, const char *host, char *device,
                                       const char *name, int thread_limit, uint3 *tid, uint3 *bid,
                                       dim3 *block, dim3 *grid, int *warp)
{
    add(host, name, handle);
}

SIM_EXPORT void __cudaRegisterVar(void **handle, char *host, char *device, const char *name,
                                  int ext, size_t bytes, int constant, int global)
{
    struct registered *entry = add(host, name, handle);
    if (entry)
        entry->bytes = bytes;
}

/* The host variable holds the address of the managed memory: set before main, as nvcc expects. */
SIM_EXPORT void __cudaRegisterManagedVar(void **handle, void **host, char *device, const char *name,
                                         int ext, size_t bytes, int constant, int global)
{
    struct registered *entry = add(host, name, handle);
    if (entry) {
        entry->bytes = bytes;
        entry->managed = host;
        *host = calloc(1, bytes);
    }
}

SIM_EXPORT void __cudaRegisterHostVar(void **handle, const char *name, char *host, size_t bytes)
{
}

SIM_EXPORT void __cudaRegisterUnifiedTable(void **handle, void *table_)
{
}

SIM_EXPORT char __cudaInitModule(void **handle)
{
    return 1;
}

/* Not initial-exec, as the small ones are: that space is scarce in a process that dlopens us. */
static __thread struct {
    dim3 grid, block;
    size_t shared;
    struct CUstream_st *stream;
} configurations[4] __attribute__((tls_model("initial-exec")));
static __thread unsigned configuration_count;

SIM_EXPORT unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared,
                                                struct CUstream_st *stream)
{
    if (configuration_count == 4)
        return 1;
    configurations[configuration_count].grid = grid;
    configurations[configuration_count].block = block;
    configurations[configuration_count].shared = shared;
    configurations[configuration_count++].stream = stream;
    return 0;
}

SIM_EXPORT cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block, size_t *shared,
                                                  void *stream)
{
    if (configuration_count == 0)
        return runtime_return(cudaErrorMissingConfiguration);
    configuration_count--;
    *grid = configurations[configuration_count].grid;
    *block = configurations[configuration_count].block;
    *shared = configurations[configuration_count].shared;
    *(struct CUstream_st **)stream = configurations[configuration_count].stream;
    return cudaSuccess;
}
