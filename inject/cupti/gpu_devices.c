/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_devices.h"

#include <string.h>

#include "base/objects.h"
#include "bytes.h"
#include "cuda/cuda_abi.h"
#include "cuda/current_device.h"
#include "cupti/gpu_state.h"
#include "record/thread.h"

#define NAME_BYTES_MAX 128

/* The driver's functions, found in its own symbol table: dlsym would find our wrappers. */
enum driver_function { GET, COUNT, NAME, UUID, UUID_PART, TOTAL, ATTRIBUTE, DRIVER_FUNCTIONS };
static const char *const function_names[DRIVER_FUNCTIONS] = {
    "cuDeviceGet",        "cuDeviceGetCount",    "cuDeviceGetName",     "cuDeviceGetUuid",
    "cuDeviceGetUuid_v2", "cuDeviceTotalMem_v2", "cuDeviceGetAttribute"};

/* Arguments of DEVICE records that are unchanged driver attributes. */
static const struct {
    uint8_t arg;
    CUdevice_attribute attribute;
} attributes[] = {
    {DEVICE_MAJOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {DEVICE_MINOR, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {DEVICE_MULTIPROCESSORS, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {DEVICE_THREADS_MAX, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR},
    {DEVICE_BLOCKS_MAX, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR},
    {DEVICE_REGISTERS_MAX, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR},
    {DEVICE_SHARED_MAX, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR},
    {DEVICE_SHARED_BLOCK_MAX, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK},
    {DEVICE_CLOCK, CU_DEVICE_ATTRIBUTE_CLOCK_RATE},
    {DEVICE_L2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE},
    {DEVICE_WARP, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
};

/* Written by one thread, before it sets `device_count`. */
static struct reported_device {
    struct gpu_device id;
    uint64_t args[RECORD_DEVICE_ARGS];
    char name[NAME_BYTES_MAX];
} devices[GPU_DEVICES_MAX];
static _Atomic unsigned device_count;
static _Atomic uint64_t used; /* one bit per device */

static int gpu_devices_visit_driver(const struct object *o, void *data)
{
    void **functions = data;
    if (!object_is(o, "libcuda.so"))
        return 0;
    for (unsigned i = 0; i < DRIVER_FUNCTIONS; i++)
        functions[i] = object_symbol(o, function_names[i]);
    return 1;
}

/* Returns the attribute, or 0 if the driver does not have it. */
static uint64_t attribute(void *get, CUdevice_attribute which, CUdevice device)
{
    int value = 0;
    if (!get || ((CUresult(*)(int *, CUdevice_attribute, CUdevice))get)(&value, which, device) !=
                    CUDA_SUCCESS)
        return 0;
    return value < 0 ? 0 : (uint64_t)value;
}

static bool read_uuid(void *get, uint64_t uuid[2], CUdevice device)
{
    uint8_t bytes[16];
    if (!get || ((CUresult(*)(void *, CUdevice))get)(bytes, device) != CUDA_SUCCESS)
        return false;
    for (unsigned i = 0; i < 2; i++)
        uuid[i] = __builtin_bswap64(load_u64(bytes + 8 * i));
    return true;
}

static void read_device(void *const functions[], CUdevice device, struct reported_device *d)
{
    void *get = functions[ATTRIBUTE];
    size_t bytes = 0;
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++)
        d->args[attributes[i].arg] = attribute(get, attributes[i].attribute, device);
    /* Bytes per clock tick; memory transfers at both edges. */
    d->args[DEVICE_BANDWIDTH] =
        2 * attribute(get, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) *
        (attribute(get, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) / 8);
    if (functions[TOTAL] &&
        ((CUresult(*)(size_t *, CUdevice))functions[TOTAL])(&bytes, device) == CUDA_SUCCESS)
        d->args[DEVICE_MEMORY] = bytes;
    if (functions[NAME])
        ((CUresult(*)(char *, int, CUdevice))functions[NAME])(d->name, sizeof d->name - 1, device);
    /* The older function knows no MIG instances: it returns the UUID of the whole device. */
    if (!read_uuid(functions[UUID], d->id.uuid, device) ||
        !read_uuid(functions[UUID_PART], d->id.mig, device) ||
        memcmp(d->id.uuid, d->id.mig, sizeof d->id.mig) == 0)
        memset(d->id.mig, 0, sizeof d->id.mig);
    d->args[DEVICE_UUID_HIGH] = d->id.uuid[0];
    d->args[DEVICE_UUID_LOW] = d->id.uuid[1];
}

void gpu_devices_read(void)
{
    void *functions[DRIVER_FUNCTIONS] = {NULL};
    CUdevice device;
    int count = 0;
    objects_each(gpu_devices_visit_driver, functions);
    if (!functions[COUNT] || !functions[GET] ||
        ((CUresult(*)(int *))functions[COUNT])(&count) != CUDA_SUCCESS)
        return;
    count = count < GPU_DEVICES_MAX ? count : GPU_DEVICES_MAX;
    for (int i = 0; i < count; i++) {
        devices[i] = (struct reported_device){.args = {[DEVICE_DEVICE] = (uint64_t)i}};
        if (((CUresult(*)(CUdevice *, int))functions[GET])(&device, i) == CUDA_SUCCESS)
            read_device(functions, device, &devices[i]);
    }
    atomic_store(&device_count, count > 0 ? (unsigned)count : 0);
}

void gpu_devices_describe(struct thread *writer)
{
    static uint64_t epoch;
    unsigned count = atomic_load(&device_count);
    if (!count || epoch == writer->epoch || !(gp.settings.numbers[SETTING_KINDS] & KINDS_INFO))
        return;
    epoch = writer->epoch;
    for (unsigned i = 0; i < count; i++) {
        struct record r = {.type = RECORD_DEVICE,
                           .arg_count = RECORD_DEVICE_ARGS,
                           .begin = gp.header.scale.ticks_zero,
                           .bytes = (const uint8_t *)devices[i].name,
                           .byte_count = (uint32_t)strlen(devices[i].name)};
        memcpy(r.args, devices[i].args, sizeof devices[i].args);
        thread_append(writer, &r);
    }
}

void gpu_devices_use(uint64_t number)
{
    if (number < GPU_DEVICES_MAX)
        atomic_fetch_or(&used, 1ull << number);
}

bool gpu_devices_get(unsigned number, struct gpu_device *device)
{
    if (number >= atomic_load(&device_count) ||
        !(atomic_load(&used) >> number & 1 || device_has_context((int32_t)number)))
        return false;
    *device = devices[number].id;
    return true;
}

bool gpu_devices_come(void)
{
    return atomic_load(&gpu.phase) != GPU_DEAD && gp.settings.numbers[SETTING_KINDS] & KINDS_INFO;
}

void gpu_devices_forget(void)
{
    atomic_store(&device_count, 0);
    atomic_store(&used, 0);
}
