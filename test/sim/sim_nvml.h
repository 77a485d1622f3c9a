/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SIM_NVML_H
#define SIM_NVML_H

/*
 * Inside libnvidia-ml.so.1, and what it asks the simulated driver. Its types are declared anew
 * here, apart from those that gpuprof has: a wrong one must not agree with itself.
 */

#include <stdbool.h>
#include <stdint.h>

#define NVML __attribute__((visibility("default")))

#ifndef SIM_NVML_DRIVER
#define SIM_NVML_DRIVER 580
#endif

/* The part of each GPU that there is with SIMCUDA_MIG: its UUID is the GPU's with this in it. */
#define SIM_MIG_INSTANCE 3
#define SIM_MIG_NAME     "mig"
#define SIM_MIG_NAME_AT  10

enum { DEVICES_MAX = 16 };

typedef enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_GPU_IS_LOST = 15,
    NVML_ERROR_NO_DATA = 21,
    NVML_ERROR_UNKNOWN = 999,
} nvmlReturn_t;

typedef struct nvmlDevice {
    unsigned index;
    bool is_part;
} * nvmlDevice_t;

/* A call, while the library's lock is held. */
struct nvml_call {
    const char *name;
    unsigned device;
    uint64_t begin_ns;
    char text[512]; /* what it answered, for the log */
};

unsigned long long nvml_number(const char *variable, unsigned long long fallback);
unsigned nvml_driver(void);
nvmlReturn_t nvml_failure(const char *name); /* what SIMNVML_FAIL wants of it */
/* Is there such a handle, and an address for the answer? */
nvmlReturn_t nvml_ready_of(nvmlDevice_t device, const void *out);
bool nvml_has_parts(void);

/* Takes the lock and as long as it is to take; what was asked to fail, fails. Each call has both.
 */
nvmlReturn_t nvml_enter(struct nvml_call *call, const char *name, nvmlDevice_t device,
                        const void *out);
nvmlReturn_t nvml_leave(struct nvml_call *call, nvmlReturn_t result);
__attribute__((format(printf, 2, 3))) void nvml_say(struct nvml_call *call, const char *format,
                                                    ...);

/* What the driver knows: how much work has run on the device, in all, and how much memory it has
 * given out. */
void nvml_meter(unsigned device, uint64_t now_ns, uint64_t *work_ns, uint64_t *used);
uint64_t nvml_now_ns(void);

/* Exported by libcuda.so.1 for this alone. */
void sim_nvml_meter(unsigned device, uint64_t now_ns, uint64_t *work_ns, uint64_t *used);
uint64_t sim_nvml_busy(unsigned device, uint64_t from_ns, uint64_t to_ns);

#endif
