/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices, as the driver lists them, and which of them the process uses, as hooks and CUPTI's
 * records of work show. CUPTI has records of devices and contexts, too, but creates them in cuInit
 * and when a context is created. A recording begins with the first call after that: with 13.0 and
 * 11.8 none of these records came (on an H200).
 */
#ifndef GPUPROF_INJECT_GPU_DEVICES_H
#define GPUPROF_INJECT_GPU_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_DEVICES_MAX 64 /* devices with higher numbers are ignored */

struct thread;

struct gpu_device {
    uint64_t uuid[2]; /* as in DEVICE records */
    uint64_t mig[2];  /* of the MIG instance that the process has; 0: the whole device */
};

/* Asks the driver, once. Called on one of our threads, after cuInit. */
void gpu_devices_read(void);

/* Writes the DEVICE records, once per recording. */
void gpu_devices_describe(struct thread *writer);

/* The process has work or a context on this device. Called on the thread that reads CUPTI's
 * records. */
void gpu_devices_use(uint64_t number);

/* Any thread. Returns false if the device is not known or not used. */
bool gpu_devices_get(unsigned number, struct gpu_device *device);

/*
 * Are the devices known, or will they be? False: CUPTI is not available, or device records are off.
 */
bool gpu_devices_come(void);

/* Call it in the child of a fork. */
void gpu_devices_forget(void);

#endif
