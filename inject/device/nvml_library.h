/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libnvidia-ml.so.1, which comes with the driver: loaded by dlopen, never linked and never
 * unloaded. It tells of devices and does nothing to them; it makes no context. All calls of it go
 * through here, on our own thread.
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
    unsigned driver; /* its major version, 580; 0: not known */
#define NVML_FUNCTION(name, older, required, params) nvmlReturn_t(*name) params;
#include "device/nvml_functions.def"
};

/* By the one thread that loads it. */
extern struct nvml_library nvml;

/*
 * Finds it and starts it: takes up to some 100 ms where the driver has to wake up. After a fork the
 * child does so anew. False: it cannot be had; `reason` says why in a line, and *result is what it
 * answered, if it did.
 */
bool nvml_library_start(char reason[static NVML_REASON_BYTES_MAX], nvmlReturn_t *result);

/* The call that is under way, if any, and since when (CLOCK_MONOTONIC): by any thread. NULL: none.
 */
const char *nvml_under_way(uint64_t *since_ns);

/* The thread that reads has begun a call of that name; NULL: it has returned. In a child: NULL. */
void nvml_asks(const char *name);

/*
 * A call of it. NVML takes locks of its own, which a child must not inherit, or the program's own
 * use of NVML hangs there: as around the loader's, a fork() waits meanwhile, with a bound.
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
