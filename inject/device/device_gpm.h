/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML calls GPM (Hopper and later): how much of a device was busy between two moments. */
#ifndef GPUPROF_INJECT_DEVICE_GPM_H
#define GPUPROF_INJECT_DEVICE_GPM_H

#include <stdbool.h>
#include <stdint.h>

#include "device/nvml_abi.h"

/* One per source. All zero: nothing has been asked for. */
struct device_gpm {
    nvmlGpmSample_t samples[2]; /* the newest first */
    uint64_t ticks;             /* when that was taken */
    bool has_one;
};

/*
 * The next sample of the device, or of that part of it (`gpu_instance`, if `is_part`), and what was
 * between it and the one before in `args`, as DEVICE_GPM records have it, from *begin to *end, in
 * ticks; *begin is 0 where there is nothing yet. Samples less than 100 ms apart tell nothing, and
 * are not taken.
 */
nvmlReturn_t device_gpm_read(struct device_gpm *gpm, nvmlDevice_t device, bool is_part,
                             unsigned gpu_instance, uint64_t *args, uint64_t *begin, uint64_t *end);

/* The next sample is the first again: what was between is not wanted. */
void device_gpm_forget(struct device_gpm *gpm);

#endif
