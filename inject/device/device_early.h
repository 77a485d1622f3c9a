/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the counters of energy of all devices show as soon as NVML has started. Which of them the
 * process uses CUPTI's records tell later, and by then a short program may be at its end: a device
 * that turns out to be one of its own has its first reading from here. What the others show is
 * written nowhere. By the thread of device_thread.c alone.
 */
#ifndef GPUPROF_INJECT_DEVICE_EARLY_H
#define GPUPROF_INJECT_DEVICE_EARLY_H

#include "device/device_source.h"

void device_early_read(void);

/* Of the device with that UUID, once; NULL: there is none. */
const struct device_early *device_early_take(const uint64_t uuid[2]);

/* There is none any more. */
void device_early_forget(void);

#endif
