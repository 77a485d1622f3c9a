/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One device, or the part of one (MIG) that the process has, and what NVML lets us read of it: a
 * reading makes a record of each group of numbers that can be read. What cannot is asked for no
 * more, and said once, by a record. By the thread of device_thread.c alone.
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
    uint32_t number;     /* from 1 on */
    uint32_t device;     /* CUDA's number, + 1; 0: not known */
    uint64_t uuid[2];    /* of the GPU */
    uint64_t mig[2];     /* of this part of it; 0: the whole */
    nvmlDevice_t handle; /* NULL: it is not to be had, or no more */
    nvmlDevice_t whole;  /* the GPU that it is, or is a part of */
    unsigned gpu_instance;
    uint8_t failures[DEVICE_ITEMS_MAX];     /* one after another, of each thing that is read */
    nvmlReturn_t refused[DEVICE_ITEMS_MAX]; /* why it is asked for no more */
    bool is_told[DEVICE_ITEMS_MAX];         /* ... and that is said */
    const char *own_lack;                   /* why this process's memory on it is not known */
    bool is_own_told;                       /* ... and that is said */
    unsigned sm_max;                        /* + 1; it does not change */
    struct device_gpm gpm;
};

static inline bool device_is_part(const struct device_source *s)
{
    return s->mig[0] || s->mig[1];
}

/* Fills uuid, mig, handles from what CUDA says. What NVML answered. */
nvmlReturn_t device_source_find(struct device_source *s, const uint64_t uuid[2],
                                const uint64_t mig[2]);

/* The same of a device that NVML has given the handle of; of a part's whole, too. */
nvmlReturn_t device_source_take(struct device_source *s, nvmlDevice_t handle);

/* What the counter of energy of a device showed before it was known whose it is. */
struct device_early {
    uint64_t uuid[2];
    uint64_t begin; /* ticks */
    uint64_t end;
    uint64_t energy; /* mJ */
};

/* States which it is and how often it is read from now on. With `early` from that on, which is its
 * first reading; NULL: there is none. */
void device_source_describe(const struct device_source *s, struct thread *t, uint64_t period_ns,
                            const struct device_early *early);

/* Its counter of energy, in mJ. */
nvmlReturn_t device_energy(nvmlDevice_t handle, uint64_t *mj);

/*
 * A reading. `own_pid`: this process as NVML knows it, 0 = it is not known; `lists`: the processes
 * on it are asked for, too. What NVML answered of the device as a whole: NVML_SUCCESS; or
 * NVML_ERROR_GPU_IS_LOST and NVML_ERROR_UNINITIALIZED, and the source is not to be read again so.
 */
nvmlReturn_t device_source_read(struct device_source *s, struct thread *t, uint32_t own_pid,
                                bool lists);

/* What does not come. */
struct device_lack {
    uint32_t source;   /* 0: of all */
    unsigned type;     /* of records; 0: all */
    uint32_t counters; /* of their arguments, a bit each; 0: all */
    enum device_absence reason;
    nvmlReturn_t result;
    const char *why;
};
void device_tell_absent(struct thread *t, const struct device_lack *lack);

/* The reason that an answer of NVML's is. */
enum device_absence device_absence_of(nvmlReturn_t result);

/* How many processes have a context on it; and is this one among them? */
nvmlReturn_t device_processes(nvmlDevice_t handle, uint32_t own_pid, unsigned *count, bool *has_own,
                              uint64_t *own_bytes);

#endif
