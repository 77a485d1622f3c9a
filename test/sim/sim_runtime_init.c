/* SPDX-License-Identifier: Apache-2.0 */
#include "sim_runtime.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <pthread.h>
#include <string.h>

void *runtime_driver[LOOKUP_COUNT];
uint32_t runtime_epoch = 1;
__thread uint32_t runtime_thread_epoch;

static __thread struct {
    int device;
    cudaError_t last;
} thread __attribute__((tls_model("initial-exec")));

static struct {
    pthread_mutex_t lock;
    void *library;
    bool is_loaded, is_ready; /* atomic */
    cudaError_t error;
    unsigned device_flags[RUNTIME_DEVICE_MAX];
    CUcontext primary[RUNTIME_DEVICE_MAX];
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((constructor)) static void locks_watch(void)
{
    sim_fork_lock(&state.lock);
    sim_fork_lock(&runtime_register_lock);
}

typedef __typeof__(cuGetProcAddress_v2) get_proc;

static CUresult driver_absent(void)
{
    return CUDA_ERROR_NOT_SUPPORTED;
}

/*
 * The driver's log, found in its symbol table by hand: a second dlsym would be one that the real
 * runtime does not make, and a look-up through cuGetProcAddress would be counted too.
 */
static const struct sim_log_ops *driver_log(void *library)
{
    struct link_map *map = NULL;
    const ElfW(Sym) *symbols = NULL;
    const char *strings = NULL;
    if (dlinfo(library, RTLD_DI_LINKMAP, &map) != 0)
        return NULL;
    for (const ElfW(Dyn) *at = map->l_ld; at->d_tag != DT_NULL; at++) {
        if (at->d_tag == DT_SYMTAB)
            symbols = (const ElfW(Sym) *)at->d_un.d_ptr;
        if (at->d_tag == DT_STRTAB)
            strings = (const char *)at->d_un.d_ptr;
    }
    /* GNU linkers put the strings right behind the symbols. */
    for (; symbols && (const char *)symbols < strings; symbols++)
        if (strcmp(strings + symbols->st_name, "simcuda_log_ops") == 0)
            return *(const struct sim_log_ops *const *)(map->l_addr + symbols->st_value);
    return NULL;
}

static void library_load(void)
{
    if (__atomic_load_n(&state.is_loaded, __ATOMIC_ACQUIRE))
        return;
    pthread_mutex_lock(&state.lock);
    if (!state.is_loaded) {
        state.library = dlopen("libcuda.so.1", RTLD_NOW);
        if (sim_mode == SIM_MODE_UNKNOWN)
            sim_mode_init();
        const struct sim_log_ops *ops = state.library ? driver_log(state.library) : NULL;
        static const struct sim_tracer *const nobody;
        if (ops)
            sim_log_attach(ops);
        __atomic_store_n(&sim_tracer_slot, ops ? ops->tracer() : &nobody, __ATOMIC_RELEASE);
        __atomic_store_n(&state.is_loaded, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&state.lock);
}

/* Whether anybody traces is known by the driver alone. */
const struct sim_tracer *const *sim_tracer_slot;
const struct sim_tracer *const *sim_tracer_connect(void)
{
    library_load();
    return sim_tracer_slot;
}

int runtime_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                  unsigned arg_count)
{
    uint64_t begin_ns = 0;
    if (!__atomic_load_n(&state.is_loaded, __ATOMIC_ACQUIRE)) {
        begin_ns = sim_now_ns();
        library_load();
    }
    return sim_call_begin(call, symbol, args, arg_count, begin_ns);
}

static void lookups_make(get_proc *ask)
{
    static const struct {
        const char *name;
        int version;
        unsigned flags;
    } lookups[] = {
#define LOOKUP(name, version, flags) {#name, version, flags},
#include "sim_lookups.def"
#undef LOOKUP
    };
    for (unsigned i = 0; i < LOOKUP_COUNT; i++) {
        CUdriverProcAddressQueryResult found;
        void *pfn = NULL;
        ask(lookups[i].name, &pfn, lookups[i].version, lookups[i].flags, &found);
        runtime_driver[i] = pfn ? pfn : (void *)(uintptr_t)driver_absent;
    }
}

static cudaError_t driver_connect(void)
{
    void *old = NULL, *again = NULL;
    int version = 0;
    get_proc *first =
        state.library ? (get_proc *)(uintptr_t)dlsym(state.library, "cuGetProcAddress_v2") : NULL;
    if (!first)
        return cudaErrorInsufficientDriver;
    CUdriverProcAddressQueryResult found;
    first("cuGetProcAddress", &old, 11030, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    first("cuGetProcAddress", &again, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &found);
    if (!again)
        return cudaErrorInsufficientDriver;
    lookups_make((get_proc *)(uintptr_t)again);
    if (D(cuDriverGetVersion, cuDriverGetVersion, 2020)(&version) != CUDA_SUCCESS ||
        version < SIM_CUDART_MAJOR * 1000)
        return cudaErrorInsufficientDriver;
    return (cudaError_t)D(cuInit, cuInit, 2000)(0);
}

cudaError_t runtime_ready(void)
{
    if (__builtin_expect(__atomic_load_n(&state.is_ready, __ATOMIC_ACQUIRE), 1))
        return state.error;
    library_load();
    pthread_mutex_lock(&state.lock);
    if (!state.is_ready) {
        state.error = driver_connect();
        __atomic_store_n(&state.is_ready, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&state.lock);
    return state.error;
}

int runtime_device(void)
{
    return thread.device;
}

/* Makes the primary context of this thread's device current. */
static cudaError_t context_bind(void)
{
    CUcontext context = NULL;
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&state.lock);
    if (!state.primary[thread.device])
        result = D(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain,
                   7000)(&state.primary[thread.device], thread.device);
    context = state.primary[thread.device];
    pthread_mutex_unlock(&state.lock);
    if (result == CUDA_SUCCESS)
        result = D(cuCtxSetCurrent, cuCtxSetCurrent, 4000)(context);
    if (result == CUDA_SUCCESS)
        runtime_thread_epoch = __atomic_load_n(&runtime_epoch, __ATOMIC_ACQUIRE);
    return (cudaError_t)result;
}

cudaError_t runtime_context_slow(void)
{
    CUcontext context = NULL;
    cudaError_t error = runtime_ready();
    if (error != cudaSuccess)
        return error;
    /* A context that the program made current by the driver API is used as it is. */
    CUresult result = D(cuCtxGetCurrent, cuCtxGetCurrent, 4000)(&context);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (context && runtime_thread_epoch == 0) {
        CUdevice device;
        if (D(cuCtxGetDevice, cuCtxGetDevice, 2000)(&device) == CUDA_SUCCESS) {
            thread.device = device;
            runtime_thread_epoch = __atomic_load_n(&runtime_epoch, __ATOMIC_ACQUIRE);
            return cudaSuccess;
        }
    }
    return context_bind();
}

static bool is_sticky(cudaError_t error)
{
    return error == cudaErrorIllegalAddress || error == cudaErrorLaunchTimeout ||
           (error >= 714 && error <= cudaErrorLaunchFailure);
}

/* Not ready is an answer, not an error. */
cudaError_t runtime_return_error(cudaError_t error)
{
    if (error != cudaErrorNotReady)
        thread.last = error;
    return error;
}

static cudaError_t last_error(bool clear)
{
    cudaError_t error = thread.last;
    if (clear && !is_sticky(error))
        thread.last = cudaSuccess;
    return error;
}

RT_RAW(cudaGetLastError, (void), last_error(true))
RT_RAW(cudaPeekAtLastError, (void), last_error(false))

static cudaError_t device_set(int device)
{
    int count = 0;
    CUresult result = D(cuDeviceGetCount, cuDeviceGetCount, 2000)(&count);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (device < 0 || device >= count || device >= RUNTIME_DEVICE_MAX)
        return cudaErrorInvalidDevice;
    thread.device = device;
    return context_bind();
}

/* Its primary context is made, and does not become current. */
static cudaError_t device_init(int device)
{
    CUcontext context = NULL;
    int count = 0;
    CUresult result = D(cuDeviceGetCount, cuDeviceGetCount, 2000)(&count);
    if (result != CUDA_SUCCESS)
        return (cudaError_t)result;
    if (device < 0 || device >= count || device >= RUNTIME_DEVICE_MAX)
        return cudaErrorInvalidDevice;
    pthread_mutex_lock(&state.lock);
    if (!state.primary[device])
        result = D(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, 7000)(&context, device);
    state.primary[device] = state.primary[device] ?: context;
    pthread_mutex_unlock(&state.lock);
    return (cudaError_t)result;
}

static cudaError_t device_get(int *device)
{
    if (!device)
        return cudaErrorInvalidValue;
    *device = thread.device;
    return cudaSuccess;
}

static cudaError_t device_reset(void)
{
    int device = thread.device;
    pthread_mutex_lock(&state.lock);
    state.primary[device] = NULL;
    pthread_mutex_unlock(&state.lock);
    CUresult result = D(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset, 7000)(device);
    __atomic_add_fetch(&runtime_epoch, 1, __ATOMIC_RELEASE);
    thread.last = cudaSuccess;
    return (cudaError_t)result;
}

static cudaError_t device_flags(unsigned flags)
{
    return (cudaError_t)D(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags,
                          11000)(thread.device, flags);
}

static cudaError_t device_flags_get(unsigned *flags)
{
    int active;
    if (!flags)
        return cudaErrorInvalidValue;
    return (cudaError_t)D(cuDevicePrimaryCtxGetState, cuDevicePrimaryCtxGetState,
                          7000)(thread.device, flags, &active);
}

RT_INIT(cudaSetDevice, (int device), device_set(device), A_U(device))
RT_INIT(cudaGetDevice, (int *device), device_get(device))
RT_INIT(cudaInitDevice, (int device, unsigned device_flags_, unsigned flags), device_init(device),
        A_U(device))
RT_INIT(cudaDeviceReset, (void), device_reset(), A_DEVICE)
RT_INIT(cudaSetDeviceFlags, (unsigned flags), device_flags(flags), A_U(flags))
RT_INIT(cudaGetDeviceFlags, (unsigned *flags), device_flags_get(flags))
RT(cudaDeviceSynchronize, (void), D(cuCtxSynchronize, cuCtxSynchronize, 2000)())

#if SIM_CUDART_MAJOR == 12
RT_INIT(cudaThreadExit, (void), device_reset())
RT(cudaThreadSynchronize, (void), D(cuCtxSynchronize, cuCtxSynchronize, 2000)())
#endif
