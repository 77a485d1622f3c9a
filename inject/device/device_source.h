/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device, or the MIG instance that the process has, and the values that NVML can read of it. A
 * reading makes one record for each group of values. Values that cannot be read are not read again,
 * and reported once by a record. Used only by the thread of device_thread.c.
 */
#ifndef GPUPROF_INJECT_DEVICE_SOURCE_H
#define GPUPROF_INJECT_DEVICE_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "device/device_gpm.h"
#include "device/nvml_library.h"
#include "record.h"

struct thread;

enum device_group {
    DEVICE_GROUP_USE,
    DEVICE_GROUP_POWER,
    DEVICE_GROUP_CLOCKS,
    DEVICE_GROUP_LINKS,
    DEVICE_GROUP_GPM,
    DEVICE_GROUP_COUNT
};

#define DEVICE_FIELDS_MAX 16
#define DEVICE_CALLS_MAX  10
#define DEVICE_ITEMS_MAX  (DEVICE_FIELDS_MAX + DEVICE_CALLS_MAX)

struct device_source {
    uint32_t number;     /* counts from 1 */
    uint32_t device;     /* CUDA's device number + 1; 0: not known */
    uint64_t uuid[2];    /* of the GPU */
    uint64_t mig[2];     /* of its MIG instance; 0: the whole GPU */
    nvmlDevice_t handle; /* NULL: not available, or no longer */
    nvmlDevice_t whole;  /* the GPU that it is part of, or itself */
    unsigned gpu_instance;
    uint8_t failures[DEVICE_ITEMS_MAX];     /* consecutive failures of each query */
    nvmlReturn_t refused[DEVICE_ITEMS_MAX]; /* why the query is not repeated */
    bool is_reported[DEVICE_ITEMS_MAX];     /* that reason was reported */
    const char *own_lack;                   /* why this process's memory on it is not known */
    bool is_own_reported;                   /* that was reported */
    unsigned sm_max;                        /* number of multiprocessors + 1; constant */
    struct device_gpm gpm;
};

static inline bool device_is_part(const struct device_source *s)
{
    return s->mig[0] || s->mig[1];
}

/* Fills in uuid, mig and handles from CUDA's values. Returns NVML's result. */
nvmlReturn_t device_source_find(struct device_source *s, const uint64_t uuid[2],
                                const uint64_t mig[2]);

/* The same for a device whose handle NVML has given; also for the GPU of a MIG instance. */
nvmlReturn_t device_source_take(struct device_source *s, nvmlDevice_t handle);

/* The energy counter of a device, read before it was known which process uses it. */
struct device_early {
    uint64_t uuid[2];
    uint64_t begin; /* in ticks */
    uint64_t end;
    uint64_t energy; /* in mJ */
};

/*
 * Writes which device it is and how often it will be read. `early` is its first reading, or NULL.
 */
void device_source_describe(const struct device_source *s, struct thread *t, uint64_t period_ns,
                            const struct device_early *early);

/* Reads its energy counter, in mJ. */
nvmlReturn_t device_energy(nvmlDevice_t handle, uint64_t *mj);

/*
 * Takes a reading. `own_pid`: this process as NVML knows it, 0: not known. `lists`: also read the
 * list of processes. Returns NVML's result for the whole device: NVML_SUCCESS, or
 * NVML_ERROR_GPU_IS_LOST or NVML_ERROR_UNINITIALIZED, after which the source must not be read again
 * as it is.
 */
nvmlReturn_t device_source_read(struct device_source *s, struct thread *t, uint32_t own_pid,
                                bool lists);

/* Values that will not come. */
struct device_lack {
    uint32_t source;   /* 0: of all devices */
    unsigned type;     /* record type; 0: all */
    uint32_t counters; /* arguments of these records, one bit each; 0: all */
    enum device_missing_reason reason;
    nvmlReturn_t result;
    const char *why;
};
void device_tell_missing(struct thread *t, const struct device_lack *lack);

/* The reason for an NVML result. */
enum device_missing_reason device_missing_reason_of(nvmlReturn_t result);

/* Counts the processes with a context on the device. Is this process one of them? */
nvmlReturn_t device_processes(nvmlDevice_t handle, uint32_t own_pid, unsigned *count, bool *has_own,
                              uint64_t *own_bytes);

#endif
