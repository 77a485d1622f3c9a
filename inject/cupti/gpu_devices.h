/* SPDX-License-Identifier: Apache-2.0 */
/* The devices on which the process has contexts, as CUPTI's records tell, and the hooks: for who
 * reads more of them than CUPTI says. */
#ifndef GPUPROF_INJECT_GPU_DEVICES_H
#define GPUPROF_INJECT_GPU_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_DEVICES_MAX 64 /* numbers from there on are not kept */

struct gpu_device {
    uint64_t uuid[2]; /* as in DEVICE records */
    uint64_t mig[2];  /* of the part of it that the process has; 0: it is a whole one */
};

/* A record of it came, or of a context on it. By the thread that reads CUPTI's records. */
void gpu_devices_note(uint64_t number, const struct gpu_device *device);
void gpu_devices_use(uint64_t number);

/* By any thread. False: it is not known, or not used. */
bool gpu_devices_get(unsigned number, struct gpu_device *device);

/* Will they be told, or have they been? False: nothing is to be had of CUPTI's records. */
bool gpu_devices_come(void);

/* In the child of a fork. */
void gpu_devices_forget(void);

#endif
