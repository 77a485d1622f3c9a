/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_driver.h"
#include "sim_driver_trace.h"

struct sim_config sim_config;
struct sim_device sim_devices[DEVICE_COUNT_MAX];

enum driver_state { DRIVER_NEW, DRIVER_READY, DRIVER_GONE };

static pthread_mutex_t init_lock = PTHREAD_MUTEX_INITIALIZER;
static int driver_state;       /* atomic */
static uint32_t *driver_alive; /* zero in the child of an initialised process */
static uint64_t serial;

uint64_t driver_serial(void)
{
    return __atomic_add_fetch(&serial, 1, __ATOMIC_RELAXED);
}

static uint64_t config_number(const char *name, uint64_t fallback)
{
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t value = text && *text ? strtoull(text, &end, 0) : fallback;
    if (end && (*end == 'G' || *end == 'g'))
        value <<= 30;
    else if (end && (*end == 'M' || *end == 'm'))
        value <<= 20;
    return value;
}

/* Read when the library is loaded, since queries of the version come before cuInit. */
__attribute__((constructor)) static void config_read(void)
{
    const char *timeline = getenv("SIMCUDA_TIMELINE");
    const char *alias = getenv("SIMCUDA_GETPROC");
    sim_config.device_count = (int)config_number("SIMCUDA_DEVICES", 2);
    if (sim_config.device_count > DEVICE_COUNT_MAX)
        sim_config.device_count = DEVICE_COUNT_MAX;
    sim_config.version = (int)config_number("SIMCUDA_DRIVER_VERSION", CUDA_VERSION);
    sim_config.memory_bytes = config_number("SIMCUDA_MEMORY", 8ull << 30);
    sim_config.kernel_ns = config_number("SIMCUDA_KERNEL_NS", 2000);
    sim_config.endless = getenv("SIMCUDA_ENDLESS");
    sim_config.copy_bytes_per_us = config_number("SIMCUDA_COPY_BYTES_PER_US", 20000);
    if (sim_config.copy_bytes_per_us == 0)
        sim_config.copy_bytes_per_us = 1;
    sim_config.pageable_bytes_per_us =
        config_number("SIMCUDA_PAGEABLE_BYTES_PER_US", sim_config.copy_bytes_per_us / 2);
    if (sim_config.pageable_bytes_per_us == 0)
        sim_config.pageable_bytes_per_us = 1;
    sim_config.block_ns = config_number("SIMCUDA_BLOCK_NS", 0);
    sim_config.launch_ns = config_number("SIMCUDA_LAUNCH_NS", 0);
    sim_config.alloc_ns = config_number("SIMCUDA_ALLOC_NS", 0);
    sim_config.alloc_waits = config_number("SIMCUDA_ALLOC_WAITS", 0) != 0;
    sim_config.launch_blocking = config_number("CUDA_LAUNCH_BLOCKING", 0) != 0;
    sim_config.timeline = !timeline || strcmp(timeline, "off") != 0;
    meter_init();
    sim_config.alias = alias && strcmp(alias, "alias") == 0;
    sim_fork_lock(&init_lock);
    sim_fork_lock(&pool_mempools.lock);
    if (sim_mode == SIM_MODE_UNKNOWN)
        sim_mode_init();
}

static void driver_gone(void)
{
    __atomic_store_n(&driver_state, DRIVER_GONE, __ATOMIC_RELEASE);
    trace_driver_gone();
}

CUresult driver_guard(void)
{
    int state = __atomic_load_n(&driver_state, __ATOMIC_ACQUIRE);
    if (SIM_UNLIKELY(state != DRIVER_READY))
        return state == DRIVER_GONE ? CUDA_ERROR_DEINITIALIZED : CUDA_ERROR_NOT_INITIALIZED;
    return SIM_UNLIKELY(*driver_alive == 0) ? CUDA_ERROR_NOT_INITIALIZED : CUDA_SUCCESS;
}

int driver_begin(struct sim_call *call, struct sim_symbol *symbol, const struct sim_arg *args,
                 unsigned arg_count)
{
    return sim_call_begin(call, symbol, args, arg_count, 0);
}

/* Errors of the device's own making leave the context unusable, as the real ones do. */
CUresult driver_inject(CUresult code)
{
    bool sticky = code == CUDA_ERROR_ILLEGAL_ADDRESS || code == CUDA_ERROR_LAUNCH_TIMEOUT ||
                  code == CUDA_ERROR_ASSERT || code == CUDA_ERROR_ECC_UNCORRECTABLE ||
                  (code >= 714 && code <= CUDA_ERROR_LAUNCH_FAILED);
    CUcontext context = sticky && driver_guard() == CUDA_SUCCESS ? context_current_or_null() : NULL;
    if (context)
        __atomic_store_n(&context->sticky, (int)code, __ATOMIC_RELAXED);
    return code;
}

CUresult driver_device(CUdevice ordinal, struct sim_device **device)
{
    if (ordinal < 0 || ordinal >= sim_config.device_count)
        return CUDA_ERROR_INVALID_DEVICE;
    *device = &sim_devices[ordinal];
    return CUDA_SUCCESS;
}

/* What the real driver loads at its initialisation, for tools. */
static void load_injection(void)
{
    const char *path = getenv("CUDA_INJECTION64_PATH");
    void *library = path && *path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    int (*initialize)(void) = library ? (int (*)(void))dlsym(library, "InitializeInjection") : NULL;
    if (initialize)
        initialize();
}

CUresult driver_init(unsigned flags)
{
    if (flags != 0)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_config.device_count <= 0)
        return CUDA_ERROR_NO_DEVICE;
    /* No lock in a forked child: the parent may have held it. */
    if (driver_alive)
        return driver_guard();
    bool is_first = false;
    int numbers[DEVICE_COUNT_MAX], visible;
    pthread_mutex_lock(&init_lock);
    if (driver_state == DRIVER_NEW) {
        visible = devices_visible(sim_config.device_count, numbers);
        if (visible == 0) {
            pthread_mutex_unlock(&init_lock);
            return CUDA_ERROR_NO_DEVICE;
        }
        sim_config.device_count = visible;
        for (int i = 0; i < visible; i++) {
            struct sim_device *device = &sim_devices[i];
            device->ordinal = i;
            device->number = numbers[i];
            pthread_mutex_init(&device->lock, NULL);
            device->default_pool = sim_pool_get(&pool_mempools);
            device->default_pool->device = device;
            device->default_pool->is_default = true;
            device->current_pool = device->default_pool;
        }
        uint32_t *alive = sim_fork_page();
        *alive = 1;
        driver_alive = alive;
        atexit(driver_gone);
        __atomic_store_n(&driver_state, DRIVER_READY, __ATOMIC_RELEASE);
        is_first = true;
    }
    pthread_mutex_unlock(&init_lock);
    if (is_first) {
        trace_init_finished();
        load_injection();
    }
    return CUDA_SUCCESS;
}

DRV_RAW(cuInit, (unsigned flags), driver_init(flags), A_U(flags))

static CUresult driver_version(int *version)
{
    if (!version)
        return CUDA_ERROR_INVALID_VALUE;
    *version = sim_config.version;
    return CUDA_SUCCESS;
}

DRV_RAW(cuDriverGetVersion, (int *version), driver_version(version))

/* The number of an error, its name, and its words. */
static const struct error_name {
    CUresult code;
    const char *name, *text;
} error_names[] = {
#define ERROR(name, text) {name, #name, text},
#include "sim_driver_errors.def"
#undef ERROR
};

static CUresult error_text(CUresult code, const char **text, bool name)
{
    if (!text)
        return CUDA_ERROR_INVALID_VALUE;
    *text = NULL;
    for (size_t i = 0; i < sizeof error_names / sizeof error_names[0]; i++)
        if (error_names[i].code == code)
            *text = name ? error_names[i].name : error_names[i].text;
    return *text ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

DRV_RAW(cuGetErrorName, (CUresult code, const char **name), error_text(code, name, true))
DRV_RAW(cuGetErrorString, (CUresult code, const char **text), error_text(code, text, false))
