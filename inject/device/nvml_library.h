/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvidia-ml.so.1, which comes with the driver. It is loaded with dlopen, never linked and never
 * unloaded. We only read from devices and create no context. All calls go through this header, on
 * our own thread.
 */
#ifndef GPUPROF_INJECT_NVML_LIBRARY_H
#define GPUPROF_INJECT_NVML_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/objects.h"
#include "device/nvml_abi.h"
#include "nvml_results.h"

#define NVML_REASON_BYTES_MAX 300

struct nvml_library {
    unsigned driver; /* major version of the driver, such as 580; 0: not known */
#define NVML_FUNCTION(name, older, required, params) nvmlReturn_t(*name) params;
#include "device/nvml_functions.def"
};

/* Written by the one thread that loads it. */
extern struct nvml_library nvml;

/*
 * Finds and starts NVML; takes up to 100 ms if the driver must wake up. The child of a fork does it
 * again. Returns false if it is not available: `reason` says why in one line, and *result is NVML's
 * result, if there is one.
 */
bool nvml_library_start(char reason[static NVML_REASON_BYTES_MAX], nvmlReturn_t *result);

/* Returns the call that is under way and since when (CLOCK_MONOTONIC), or NULL. Any thread. */
const char *nvml_under_way(uint64_t *since_ns);

/* The thread that reads has begun a call of that name; NULL: it has returned. Call it with NULL in
 * a child. */
void nvml_asks(const char *name);

/*
 * Calls an NVML function. NVML takes locks that a forked child must not inherit, since the
 * program's own use of NVML would hang there. As with the loader's lock, fork() waits meanwhile,
 * with a time limit.
 */
#define NVML_CALL(name, ...)                                                                       \
    ({                                                                                             \
        loader_enter();                                                                            \
        nvml_asks(#name);                                                                          \
        nvmlReturn_t result_ = nvml.name ? nvml.name(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND; \
        nvml_asks(NULL);                                                                           \
        loader_leave();                                                                            \
        result_;                                                                                   \
    })

#endif
