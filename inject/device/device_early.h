/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The energy counters of all devices, read as soon as NVML has started. CUPTI's records show later
 * which devices the process uses, and a short program may have ended by then. A device that turns
 * out to be used gets its first reading from here; the others' readings are not written. Used only
 * by the thread of device_thread.c.
 */
#ifndef GPUPROF_INJECT_DEVICE_EARLY_H
#define GPUPROF_INJECT_DEVICE_EARLY_H

#include "device/device_source.h"

void device_early_read(void);

/* Returns the first reading of the device with that UUID, once; NULL: there is none. */
const struct device_early *device_early_take(const uint64_t uuid[2]);

/* Forgets all readings. */
void device_early_forget(void);

#endif
