/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices there are, asked of the driver; and on which of them the process has contexts, as
 * the hooks and the work in CUPTI's records tell. CUPTI has records of devices and contexts, too,
 * but makes them when cuInit runs and when a context is made, and a recording begins with the first
 * call after that: with 13.0 and with 11.8 none came (on an H200).
 */
#ifndef GPUPROF_INJECT_GPU_DEVICES_H
#define GPUPROF_INJECT_GPU_DEVICES_H

#include <stdbool.h>
#include <stdint.h>

#define GPU_DEVICES_MAX 64 /* numbers from there on are not kept */

struct thread;

struct gpu_device {
    uint64_t uuid[2]; /* as in DEVICE records */
    uint64_t mig[2];  /* of the part of it that the process has; 0: it is a whole one */
};

/* Asks the driver, once. By a thread of ours, after cuInit. */
void gpu_devices_read(void);

/* DEVICE records of all, once in a recording. */
void gpu_devices_describe(struct thread *writer);

/* The process has work on it, or a context. By the thread that reads CUPTI's records. */
void gpu_devices_use(uint64_t number);

/* By any thread. False: it is not known, or not used. */
bool gpu_devices_get(unsigned number, struct gpu_device *device);

/* Will they be told, or have they been? False: CUPTI is not to be had, or they are not wanted. */
bool gpu_devices_come(void);

/* In the child of a fork. */
void gpu_devices_forget(void);

#endif
