/* SPDX-License-Identifier: Apache-2.0 */
#include "device/nvml_library.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/real_dlsym.h"
#include "base/ticks.h"

#define NVML_SONAME       "libnvidia-ml.so.1"
#define VERSION_BYTES_MAX 80

struct nvml_library nvml;

/* Set by the thread that reads. */
static _Atomic(const char *) asked;
static _Atomic uint64_t asked_ns;

void nvml_asks(const char *name)
{
    if (name)
        atomic_store(&asked_ns, clock_ns(CLOCK_MONOTONIC));
    atomic_store(&asked, name);
}

const char *nvml_under_way(uint64_t *since_ns)
{
    const char *name = atomic_load(&asked);
    *since_ns = atomic_load(&asked_ns); /* the time belongs to this call or a later one */
    return name;
}

/* We hold the loader's lock while we ask it; see unwinder.c. */
static bool nvml_library_load(char reason[static NVML_REASON_BYTES_MAX])
{
    const char *missing = NULL;
    loader_enter();
    nvml_asks("dlopen(\"" NVML_SONAME "\")");
    void *handle = dlopen(NVML_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!handle) {
        const char *why = dlerror();
        snprintf(reason, NVML_REASON_BYTES_MAX, "%s", why ? why : NVML_SONAME);
    } else {
        dlsym_find_real();
#define NVML_FUNCTION(name, older, required, params)                                               \
    nvml.name = (nvmlReturn_t(*) params)real_dlsym(handle, #name);                                 \
    if (!nvml.name && *older)                                                                      \
        nvml.name = (nvmlReturn_t(*) params)real_dlsym(handle, older);                             \
    missing = !nvml.name && required && !missing ? #name : missing;
#include "device/nvml_functions.def"
        if (missing)
            snprintf(reason, NVML_REASON_BYTES_MAX, NVML_SONAME " has no %s", missing);
    }
    nvml_asks(NULL);
    loader_leave();
    return handle && !missing;
}

bool nvml_library_start(char reason[static NVML_REASON_BYTES_MAX], nvmlReturn_t *result)
{
    char version[VERSION_BYTES_MAX] = "";
    *result = NVML_SUCCESS;
    if (!nvml_library_load(reason))
        return false;
    *result = NVML_CALL(nvmlInit_v2);
    if (*result != NVML_SUCCESS) {
        snprintf(reason, NVML_REASON_BYTES_MAX, NVML_SONAME " does not start: %s (%d)",
                 nvml_result_text(*result), (int)*result);
        return false;
    }
    if (NVML_CALL(nvmlSystemGetDriverVersion, version, sizeof version) == NVML_SUCCESS)
        nvml.driver = (unsigned)strtoul(version, NULL, 10);
    return true;
}
