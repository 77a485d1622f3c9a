/* SPDX-License-Identifier: Apache-2.0 */
#include "cupti/gpu_devices.h"

#include <string.h>

#include "cuda/current_device.h"
#include "cupti/gpu_state.h"

enum { IS_KNOWN = 1, IS_USED = 2 };

/* By the thread that reads CUPTI's records; each once. */
static struct gpu_device devices[GPU_DEVICES_MAX];
static _Atomic uint32_t states[GPU_DEVICES_MAX];

void gpu_devices_note(uint64_t number, const struct gpu_device *device)
{
    if (number >= GPU_DEVICES_MAX || atomic_load(&states[number]) & IS_KNOWN)
        return;
    devices[number] = *device;
    atomic_fetch_or(&states[number], IS_KNOWN);
}

void gpu_devices_use(uint64_t number)
{
    if (number < GPU_DEVICES_MAX)
        atomic_fetch_or(&states[number], IS_USED);
}

bool gpu_devices_get(unsigned number, struct gpu_device *device)
{
    uint32_t state = number < GPU_DEVICES_MAX ? atomic_load(&states[number]) : 0;
    if (!(state & IS_KNOWN) || !(state & IS_USED || device_has_context((int32_t)number)))
        return false;
    *device = devices[number];
    return true;
}

bool gpu_devices_come(void)
{
    return atomic_load(&gpu.phase) != GPU_DEAD && gp.settings.numbers[SETTING_KINDS] & KINDS_INFO;
}

void gpu_devices_forget(void)
{
    memset(states, 0, sizeof states);
}
