/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvidia-ml.so.1: the management library, as far as frameworks ask it whether and which GPUs
 * there are. It lives beside the driver and not on it: it answers without cuInit, orders devices by
 * PCI address and heeds no CUDA_VISIBLE_DEVICES. Its devices are those of sim_driver_device.c.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim_nvml.h"

enum { PCI_BUS_FIRST = 0x17 };

typedef struct {
    char busIdLegacy[16];
    unsigned domain, bus, device, pciDeviceId, pciSubSystemId;
    char busId[32];
} nvmlPciInfo_t;

_Static_assert(sizeof(nvmlPciInfo_t) == 68, "as in nvml.h");

static struct nvmlDevice devices[DEVICES_MAX], parts[DEVICES_MAX];
static int users; /* of nvmlInit, less those of nvmlShutdown */

unsigned long long nvml_number(const char *name, unsigned long long fallback)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long value = text && *text ? strtoull(text, &end, 0) : fallback;
    return end && (*end == 'G' || *end == 'g')   ? value << 30
           : end && (*end == 'M' || *end == 'm') ? value << 20
                                                 : value;
}

unsigned nvml_driver(void)
{
    return (unsigned)nvml_number("SIMNVML_DRIVER", SIM_NVML_DRIVER);
}

bool nvml_has_parts(void)
{
    return getenv("SIMCUDA_MIG") != NULL;
}

static unsigned device_count(void)
{
    unsigned long long count = nvml_number("SIMCUDA_DEVICES", 2);
    return count < DEVICES_MAX ? (unsigned)count : DEVICES_MAX;
}

static nvmlReturn_t ready(const void *out)
{
    return !__atomic_load_n(&users, __ATOMIC_ACQUIRE) ? NVML_ERROR_UNINITIALIZED
           : !out                                     ? NVML_ERROR_INVALID_ARGUMENT
                                                      : NVML_SUCCESS;
}

/* The same for what is said of a device: INVALID_ARGUMENT of a handle that is none. */
nvmlReturn_t nvml_ready_of(nvmlDevice_t device, const void *out)
{
    nvmlReturn_t result = ready(out);
    bool is_device = device >= devices && device < devices + device_count();
    bool is_part = device >= parts && device < parts + device_count();
    return result == NVML_SUCCESS && !is_device && !is_part ? NVML_ERROR_INVALID_ARGUMENT : result;
}

static nvmlReturn_t give_text(char *out, unsigned bytes, const char *text)
{
    if (strlen(text) >= bytes)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(out, text);
    return NVML_SUCCESS;
}

static void uuid_of(const struct nvmlDevice *device, char *text, size_t bytes)
{
    char raw[17];
    snprintf(raw, sizeof raw, "simulated-gpu-%02u", device->index);
    if (device->is_part)
        memcpy(raw + SIM_MIG_NAME_AT, SIM_MIG_NAME, sizeof SIM_MIG_NAME - 1);
    int n = snprintf(text, bytes, device->is_part ? "MIG-" : "GPU-");
    for (unsigned i = 0; i < 16; i++)
        n += snprintf(text + n, bytes - (size_t)n, "%s%02x",
                      i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", (unsigned char)raw[i]);
}

static nvmlReturn_t find(nvmlDevice_t *device, unsigned index, nvmlReturn_t otherwise)
{
    if (index >= device_count())
        return otherwise;
    devices[index].index = index;
    *device = &devices[index];
    return NVML_SUCCESS;
}

NVML nvmlReturn_t nvmlInit_v2(void)
{
    nvmlReturn_t result = nvml_failure("nvmlInit_v2");
    if (result == NVML_SUCCESS)
        __atomic_add_fetch(&users, 1, __ATOMIC_ACQ_REL);
    return result;
}

NVML nvmlReturn_t nvmlInit(void)
{
    return nvmlInit_v2();
}

NVML nvmlReturn_t nvmlInitWithFlags(unsigned flags)
{
    (void)flags;
    return nvmlInit_v2();
}

NVML nvmlReturn_t nvmlShutdown(void)
{
    nvmlReturn_t result = ready(&users);
    if (result == NVML_SUCCESS)
        __atomic_sub_fetch(&users, 1, __ATOMIC_ACQ_REL);
    return result;
}

NVML const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    default: return "Unknown Error";
    }
}

NVML nvmlReturn_t nvmlSystemGetCudaDriverVersion(int *version)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version = (int)nvml_number("SIMCUDA_DRIVER_VERSION", 13000);
    return NVML_SUCCESS;
}

NVML nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

NVML nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned bytes)
{
    char text[32];
    nvmlReturn_t result = ready(version);
    snprintf(text, sizeof text, "%u.65.06", nvml_driver());
    return result == NVML_SUCCESS ? give_text(version, bytes, text) : result;
}

NVML nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned bytes)
{
    char text[32];
    nvmlReturn_t result = ready(version);
    snprintf(text, sizeof text, "13.%u.65.06", nvml_driver());
    return result == NVML_SUCCESS ? give_text(version, bytes, text) : result;
}

NVML nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    nvmlReturn_t result = ready(count);
    if (result == NVML_SUCCESS)
        *count = device_count();
    return result;
}

NVML nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    nvmlReturn_t result = ready(device);
    return result == NVML_SUCCESS ? find(device, index, NVML_ERROR_INVALID_ARGUMENT) : result;
}

NVML nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    nvmlReturn_t result = ready(uuid ? (const void *)device : NULL);
    for (unsigned i = 0; result == NVML_SUCCESS && i < device_count(); i++) {
        struct nvmlDevice part = {.index = i, .is_part = true}, whole = {.index = i};
        char text[48];
        uuid_of(&whole, text, sizeof text);
        if (strcmp(text, uuid) == 0)
            return find(device, i, NVML_ERROR_NOT_FOUND);
        uuid_of(&part, text, sizeof text);
        if (nvml_has_parts() && strcmp(text, uuid) == 0) {
            parts[i] = part;
            *device = &parts[i];
            return NVML_SUCCESS;
        }
    }
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_FOUND : result;
}

NVML nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t part,
                                                               nvmlDevice_t *device)
{
    nvmlReturn_t result = nvml_ready_of(part, device);
    if (result == NVML_SUCCESS && !part->is_part)
        result = NVML_ERROR_INVALID_ARGUMENT;
    return result == NVML_SUCCESS ? find(device, part->index, NVML_ERROR_NOT_FOUND) : result;
}

NVML nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t part, unsigned *id)
{
    nvmlReturn_t result = nvml_ready_of(part, id);
    if (result == NVML_SUCCESS && !part->is_part)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *id = SIM_MIG_INSTANCE;
    return result;
}

NVML nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device)
{
    unsigned domain, bus, slot, function;
    nvmlReturn_t result = ready(id ? (const void *)device : NULL);
    if (result != NVML_SUCCESS)
        return result;
    if (sscanf(id, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    return find(device, bus - PCI_BUS_FIRST, NVML_ERROR_NOT_FOUND);
}

static nvmlReturn_t give_number(nvmlDevice_t device, unsigned *out, unsigned number)
{
    nvmlReturn_t result = nvml_ready_of(device, out);
    if (result == NVML_SUCCESS)
        *out = number;
    return result;
}

NVML nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    return nvml_ready_of(device, index) ? nvml_ready_of(device, index)
                                        : give_number(device, index, device->index);
}

NVML nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    return nvmlDeviceGetIndex(device, minor);
}

NVML nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned bytes)
{
    nvmlReturn_t result = nvml_ready_of(device, name);
    return result == NVML_SUCCESS ? give_text(name, bytes, "Simulated GPU") : result;
}

NVML nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned bytes)
{
    char text[48];
    nvmlReturn_t result = nvml_ready_of(device, uuid);
    if (result != NVML_SUCCESS)
        return result;
    uuid_of(device, text, sizeof text);
    return give_text(uuid, bytes, text);
}

NVML nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
    nvmlReturn_t result = nvml_ready_of(device, pci);
    if (result != NVML_SUCCESS)
        return result;
    *pci = (nvmlPciInfo_t){.bus = PCI_BUS_FIRST + device->index};
    snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "0000:%02X:00.0", pci->bus);
    snprintf(pci->busId, sizeof pci->busId, "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

NVML nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    nvmlReturn_t result = nvml_ready_of(device, major && minor ? major : NULL);
    if (result == NVML_SUCCESS)
        *major = 9, *minor = 0;
    return result;
}

NVML nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
    return give_number(device, generation, 5);
}

NVML nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width)
{
    return give_number(device, width, 16);
}

/* No NVLink, no fabric. */
NVML nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned link, int *is_active)
{
    (void)link;
    nvmlReturn_t result = nvml_ready_of(device, is_active);
    return result == NVML_SUCCESS ? NVML_ERROR_NOT_SUPPORTED : result;
}

NVML nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t device, unsigned link, int capability,
                                                unsigned *result)
{
    (void)capability;
    return nvmlDeviceGetNvLinkState(device, link, (int *)result);
}

NVML nvmlReturn_t nvmlDeviceGetGpuFabricInfoV(nvmlDevice_t device, void *info)
{
    return nvmlDeviceGetNvLinkState(device, 0, info);
}
