/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML's GPM metrics (Hopper and later): how busy the parts of a device were between two moments.
 */
#ifndef GPUPROF_INJECT_DEVICE_GPM_H
#define GPUPROF_INJECT_DEVICE_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "device/nvml_abi.h"

/* One per source. Zeroed: no sample has been taken. */
struct device_gpm {
    nvmlGpmSample_t samples[2]; /* newest first */
    uint64_t ticks;             /* time of the newest sample */
    bool has_one;
};

/*
 * Takes the next sample of the device, or of its MIG instance (`gpu_instance`, if `is_part`).
 * `args` receives the values since the previous sample, as in DEVICE_GPM records, and *begin and
 * *end the times in ticks; *begin is 0 if there is no previous sample. Samples less than 100 ms
 * apart are meaningless, and not taken.
 */
nvmlReturn_t device_gpm_read(struct device_gpm *gpm, nvmlDevice_t device, bool is_part,
                             unsigned gpu_instance, uint64_t *args, uint64_t *begin, uint64_t *end);

/* The next sample becomes the first one again: the time before it is not wanted. */
void device_gpm_forget(struct device_gpm *gpm);

#endif
