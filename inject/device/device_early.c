/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device_early.h"

#include <string.h>

#include "base/ticks.h"
#include "device/nvml_library.h"

#define EARLY_MAX 64 /* more than any machine has */

static struct {
    struct device_early list[EARLY_MAX];
    unsigned count;
} all;

void device_early_forget(void)
{
    all.count = 0;
}

void device_early_read(void)
{
    unsigned device_count = 0;
    device_early_forget();
    if (NVML_CALL(nvmlDeviceGetCount_v2, &device_count) != NVML_SUCCESS)
        return;
    for (unsigned i = 0; i < device_count && all.count < EARLY_MAX; i++) {
        struct device_early *early = &all.list[all.count];
        struct device_source device = {0};
        nvmlDevice_t handle;
        if (NVML_CALL(nvmlDeviceGetHandleByIndex_v2, i, &handle) != NVML_SUCCESS ||
            device_source_take(&device, handle) != NVML_SUCCESS)
            continue;
        memcpy(early->uuid, device.uuid, sizeof early->uuid);
        early->begin = ticks_now();
        all.count += device_energy(handle, &early->energy) == NVML_SUCCESS;
        early->end = ticks_now();
    }
}

const struct device_early *device_early_take(const uint64_t uuid[2])
{
    for (unsigned i = 0; i < all.count; i++) {
        struct device_early *early = &all.list[i];
        if (memcmp(early->uuid, uuid, sizeof early->uuid) == 0) {
            memset(early->uuid, 0, sizeof early->uuid);
            return early;
        }
    }
    return NULL;
}
