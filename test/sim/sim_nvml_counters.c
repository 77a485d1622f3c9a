/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What NVML tells of a device's state. Power is IDLE_MW, and ACTIVE_MW more for each piece of work
 * that runs: the energy since the first question is the sum of that, whoever computes it. README.md
 * has the variables that make it answer otherwise.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sim_nvml.h"

enum {
    IDLE_MW = 50000,
    ACTIVE_MW = 250000,
    LIMIT_MW = 700000,
    OTHERS_PID = 1,
    GPU_DEGREES = 45,
    SM_MHZ = 1980,
    MEMORY_MHZ = 2619,
    REASON_IDLE = 1,
    PERIOD_NS = 166666667, /* that utilisation is of: the sixth part of a second */
};

#define RESERVED_BYTES (300ull << 20)
#define LEAP_MJ        1000000000000u /* what no device burns in a year */
#define NOT_FOR_PARTS  NVML_ERROR_NOT_SUPPORTED

typedef struct {
    unsigned long long total, free, used;
} nvmlMemory_t;

typedef struct {
    unsigned version;
    unsigned long long total, reserved, free, used;
} nvmlMemory_v2_t;

typedef struct {
    unsigned gpu, memory;
} nvmlUtilization_t;

typedef struct {
    unsigned pid;
    unsigned long long usedGpuMemory;
    unsigned gpuInstanceId, computeInstanceId;
} nvmlProcessInfo_t;

typedef struct {
    unsigned fieldId, scopeId;
    long long timestamp, latencyUsec;
    int valueType;
    nvmlReturn_t nvmlReturn;
    union {
        double dVal;
        unsigned uiVal;
        unsigned long long ullVal;
    } value;
} nvmlFieldValue_t;

_Static_assert(sizeof(nvmlFieldValue_t) == 40 && sizeof(nvmlMemory_v2_t) == 40 &&
                   sizeof(nvmlProcessInfo_t) == 24,
               "as in nvml.h");

enum { TYPE_UINT = 1, TYPE_ULONG_LONG = 3 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned reads[DEVICES_MAX]; /* of fields */
static uint64_t first_ns;           /* when it was asked first: energy begins then */

/* ---- calls ----------------------------------------------------------------------------------- */

uint64_t nvml_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void nvml_say(struct nvml_call *call, const char *format, ...)
{
    size_t length = strlen(call->text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(call->text + length, sizeof call->text - length, format, arguments);
    va_end(arguments);
}

/* What the simulated driver has to say, if it is in this process. */
static void *driver_symbol(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    return driver ? dlsym(driver, name) : NULL;
}

void nvml_meter(unsigned device, uint64_t now_ns, uint64_t *work_ns, uint64_t *used)
{
    static void (*meter)(unsigned, uint64_t, uint64_t *, uint64_t *);
    if (!meter)
        meter = (void (*)(unsigned, uint64_t, uint64_t *, uint64_t *))(uintptr_t)driver_symbol(
            "sim_nvml_meter");
    *work_ns = *used = 0;
    if (meter)
        meter(device, now_ns, work_ns, used);
}

static uint64_t busy_ns(unsigned device, uint64_t from_ns, uint64_t to_ns)
{
    static uint64_t (*busy)(unsigned, uint64_t, uint64_t);
    if (!busy)
        busy = (uint64_t(*)(unsigned, uint64_t, uint64_t))(uintptr_t)driver_symbol("sim_nvml_busy");
    return busy ? busy(device, from_ns, to_ns) : 0;
}

/* SIMNVML_FAIL: "function=code,function=hang". A name stands for its versions, too. */
nvmlReturn_t nvml_failure(const char *name)
{
    const char *list = getenv("SIMNVML_FAIL");
    for (const char *item = list; item && *item; item += strcspn(item, ","), item += *item == ',') {
        size_t length = strcspn(item, "=");
        if (strncmp(name, item, length) != 0 || (name[length] && name[length] != '_') ||
            item[length] != '=')
            continue;
        while (strncmp(item + length, "=hang", 5) == 0)
            pause();
        return (nvmlReturn_t)atoi(item + length + 1);
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvml_enter(struct nvml_call *call, const char *name, nvmlDevice_t device,
                        const void *out)
{
    pthread_mutex_lock(&lock);
    *call = (struct nvml_call){.name = name, .begin_ns = nvml_now_ns()};
    nvmlReturn_t result = nvml_ready_of(device, out);
    first_ns = first_ns ? first_ns : call->begin_ns;
    if (result != NVML_SUCCESS)
        return result;
    call->device = device->index;
    unsigned long long lost = nvml_number("SIMNVML_LOST", 0);
    bool is_field = strcmp(name, "nvmlDeviceGetFieldValues") == 0;
    reads[device->index] += is_field;
    if (is_field)
        usleep((useconds_t)nvml_number("SIMNVML_SLOW_MS", 0) * 1000);
    if (lost && reads[device->index] > lost)
        return NVML_ERROR_GPU_IS_LOST;
    return nvml_failure(name);
}

nvmlReturn_t nvml_leave(struct nvml_call *call, nvmlReturn_t result)
{
    const char *folder = getenv("SIMNVML_LOG");
    if (folder) {
        char line[1024];
        int length = snprintf(line, sizeof line, "%llu %llu %s %u %d%s\n",
                              (unsigned long long)call->begin_ns, (unsigned long long)nvml_now_ns(),
                              call->name, call->device, (int)result,
                              result == NVML_SUCCESS ? call->text : "");
        char path[512];
        snprintf(path, sizeof path, "%s/nvml-%d.log", folder, (int)getpid());
        int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
        ssize_t written = fd < 0 ? 0 : write(fd, line, (size_t)length);
        (void)written;
        close(fd);
    }
    pthread_mutex_unlock(&lock);
    return result;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static uint64_t energy_mj(unsigned device, uint64_t now_ns, uint64_t work_ns)
{
    static uint64_t lost_mj[DEVICES_MAX]; /* before it began anew */
    unsigned long long jump = nvml_number("SIMNVML_JUMP", 0);
    unsigned long long leap = nvml_number("SIMNVML_LEAP", 0);
    uint64_t energy = ((now_ns - first_ns) / 1000 * IDLE_MW + work_ns / 1000 * ACTIVE_MW) / 1000000;
    if (jump && reads[device] == jump)
        lost_mj[device] = energy;
    energy += leap && reads[device] >= leap ? LEAP_MJ : 0;
    return energy - lost_mj[device] + 123456789;
}

/* Work that ran since the last question, as a share of the time, by thousand. */
static unsigned running(unsigned device, uint64_t now_ns, uint64_t work_ns)
{
    static uint64_t last_ns[DEVICES_MAX], last_work_ns[DEVICES_MAX];
    static unsigned share[DEVICES_MAX];
    if (now_ns > last_ns[device])
        share[device] =
            (unsigned)((work_ns - last_work_ns[device]) * 1000 / (now_ns - last_ns[device]));
    last_ns[device] = now_ns;
    last_work_ns[device] = work_ns;
    return share[device];
}

/* True: the driver has that field. What 269 to 271 mean, it says only from 580 on. */
static bool field_of(nvmlFieldValue_t *v, unsigned device, uint64_t now_ns, uint64_t work_ns)
{
    unsigned driver = nvml_driver();
    unsigned share = v->fieldId == 185 || v->fieldId == 186 ? running(device, now_ns, work_ns) : 0;
    v->valueType = TYPE_ULONG_LONG;
    switch (v->fieldId) {
    case 74: v->value.ullVal = work_ns / 10; return true;
    case 75: v->value.ullVal = work_ns / 100; return true;
    case 76: v->value.ullVal = 0; return true;
    case 82:
        v->value.uiVal = GPU_DEGREES + 10;
        v->valueType = TYPE_UINT;
        return true;
    case 83: v->value.ullVal = energy_mj(device, now_ns, work_ns); return true;
    case 138: v->value.ullVal = work_ns / 1000; return v->scopeId == 0xffffffff;
    case 139: v->value.ullVal = work_ns / 2000; return v->scopeId == 0xffffffff;
    case 185:
    case 186:
        v->value.uiVal = IDLE_MW + ACTIVE_MW / 1000 * share;
        v->valueType = TYPE_UINT;
        return driver >= 535;
    case 190:
        v->value.uiVal = LIMIT_MW;
        v->valueType = TYPE_UINT;
        return driver >= 535;
    case 197: v->value.ullVal = work_ns * 3; return driver >= 560;
    case 198: v->value.ullVal = (uint32_t)(work_ns * 5); return driver >= 560;
    case 269:
    case 270:
    case 271: v->value.ullVal = driver >= 580 ? work_ns / v->fieldId : 99; return driver >= 575;
    default: return false;
    }
}

NVML nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *values)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, __func__, device, values);
    uint64_t now_ns = nvml_now_ns(), work_ns, used;
    if (result == NVML_SUCCESS)
        nvml_meter(device->index, now_ns, &work_ns, &used);
    for (int i = 0; result == NVML_SUCCESS && i < count; i++) {
        bool has = !device->is_part && field_of(&values[i], device->index, now_ns, work_ns);
        values[i].nvmlReturn = has ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        values[i].latencyUsec = 10;
        if (has)
            nvml_say(&call, " %u=%llu", values[i].fieldId,
                     values[i].valueType == TYPE_UINT ? values[i].value.uiVal
                                                      : values[i].value.ullVal);
    }
    if (result == NVML_SUCCESS)
        nvml_say(&call, " work=%llu now=%llu", (unsigned long long)work_ns,
                 (unsigned long long)now_ns);
    return nvml_leave(&call, result);
}

/* ---- single answers -------------------------------------------------------------------------- */

static nvmlReturn_t give(const char *name, nvmlDevice_t device, unsigned *out, unsigned value)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, name, device, out);
    if (result == NVML_SUCCESS && device->is_part)
        result = NOT_FOR_PARTS;
    if (result == NVML_SUCCESS) {
        *out = value;
        nvml_say(&call, " %u", value);
    }
    return nvml_leave(&call, result);
}

NVML nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *power)
{
    return give(__func__, device, power, IDLE_MW);
}

NVML nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, int sensor, unsigned *degrees)
{
    return give(__func__, device, sensor == 0 ? degrees : NULL, GPU_DEGREES);
}

NVML nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
    return give(__func__, device, type == 1 || type == 2 ? mhz : NULL,
                type == 1 ? SM_MHZ : MEMORY_MHZ);
}

NVML nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, int type, unsigned *mhz)
{
    return give(__func__, device, type == 1 || type == 2 ? mhz : NULL,
                type == 1 ? SM_MHZ : MEMORY_MHZ);
}

static nvmlReturn_t give_reasons(const char *name, nvmlDevice_t device, unsigned long long *reasons)
{
    unsigned bits = 0;
    nvmlReturn_t result = give(name, device, reasons ? &bits : NULL, REASON_IDLE);
    if (result == NVML_SUCCESS)
        *reasons = bits;
    return result;
}

NVML nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                            unsigned long long *reasons)
{
    return give_reasons(__func__, device, reasons);
}

NVML nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *rates)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, __func__, device, rates);
    uint64_t now_ns = nvml_now_ns();
    if (result == NVML_SUCCESS && (device->is_part || nvml_has_parts()))
        result = NOT_FOR_PARTS;
    if (result == NVML_SUCCESS) {
        uint64_t ns = busy_ns(device->index, now_ns - PERIOD_NS, now_ns);
        *rates = (nvmlUtilization_t){(unsigned)(ns * 100 / PERIOD_NS), 7};
        nvml_say(&call, " %u %u now=%llu", rates->gpu, rates->memory, (unsigned long long)now_ns);
    }
    return nvml_leave(&call, result);
}

static unsigned long long others_bytes(void)
{
    return nvml_number("SIMNVML_OTHERS", 512ull << 20);
}

static nvmlReturn_t give_memory(const char *name, nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, name, device, memory);
    uint64_t work_ns, used;
    if (result == NVML_SUCCESS) {
        nvml_meter(device->index, nvml_now_ns(), &work_ns, &used);
        memory->total = nvml_number("SIMCUDA_MEMORY", 8ull << 30);
        memory->used = used + others_bytes();
        memory->reserved = RESERVED_BYTES;
        memory->free = memory->total - memory->used - memory->reserved;
        nvml_say(&call, " total=%llu used=%llu", memory->total, memory->used);
    }
    return nvml_leave(&call, result);
}

NVML nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t all;
    nvmlReturn_t result = give_memory(__func__, device, memory ? &all : NULL);
    if (result == NVML_SUCCESS)
        *memory = (nvmlMemory_t){all.total, all.free, all.used + all.reserved};
    return result;
}

static nvmlReturn_t give_processes(const char *name, nvmlDevice_t device, unsigned *count,
                                   nvmlProcessInfo_t *list)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, name, device, count);
    uint64_t work_ns, used;
    if (result == NVML_SUCCESS && *count < 2)
        result = NVML_ERROR_INSUFFICIENT_SIZE;
    if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
        *count = 2;
    if (result == NVML_SUCCESS) {
        nvml_meter(device->index, nvml_now_ns(), &work_ns, &used);
        list[0] = (nvmlProcessInfo_t){OTHERS_PID, others_bytes(), ~0u, ~0u};
        list[1] = (nvmlProcessInfo_t){(unsigned)getpid(), used, ~0u, ~0u};
        nvml_say(&call, " %llu", (unsigned long long)used);
    }
    return nvml_leave(&call, result);
}

NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned *count,
                                                          nvmlProcessInfo_t *list)
{
    return give_processes(__func__, device, count, list);
}

#if SIM_NVML_DRIVER > 450
NVML nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                          nvmlProcessInfo_t *list)
{
    return give_processes(__func__, device, count, list);
}

NVML nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device,
                                                         unsigned long long *reasons)
{
    return give_reasons(__func__, device, reasons);
}

NVML nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    if (memory && memory->version != (sizeof *memory | 2u << 24))
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_memory(__func__, device, memory);
}
#endif
