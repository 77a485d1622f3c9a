/* SPDX-License-Identifier: Apache-2.0 */
/* The check of NVML, which --device asks: in a process of its own, as CUDA in gpu_sight.c. */
#include "doctor/checks.h"

#include <dlfcn.h>
#include <stdio.h>

#include "doctor/aside.h"
#include "nvml_results.h"

#define NVML_SECONDS       10
#define NVML_SONAME        "libnvidia-ml.so.1"
#define NVML_VERSION_BYTES 80
#define NVML_SUCCESS       0

/* The types are those of inject/device. */
typedef int init_fn(void);
typedef int version_fn(char *version, unsigned bytes);
typedef int count_fn(unsigned *count);
typedef int handle_fn(unsigned index, void **device);
typedef int power_fn(void *device, unsigned *milliwatts);

struct nvml_sight {
    char reason[SIGHT_TEXT_BYTES]; /* "": it works */
    char version[NVML_VERSION_BYTES];
    unsigned device_count;
    unsigned readable_count; /* of those whose power is told */
    int error;               /* of the last of the others */
};

static void ask(void *result, void *context)
{
    struct nvml_sight *s = result;
    unsigned milliwatts;
    (void)context;
    void *library = dlopen(NVML_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        const char *why = dlerror();
        snprintf(s->reason, sizeof s->reason, "%s", why ? why : NVML_SONAME " cannot be loaded");
        return;
    }
    init_fn *init = (init_fn *)dlsym(library, "nvmlInit_v2");
    version_fn *version = (version_fn *)dlsym(library, "nvmlSystemGetDriverVersion");
    count_fn *count = (count_fn *)dlsym(library, "nvmlDeviceGetCount_v2");
    handle_fn *handle = (handle_fn *)dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    power_fn *power = (power_fn *)dlsym(library, "nvmlDeviceGetPowerUsage");
    if (!init || !version || !count || !handle || !power) {
        snprintf(s->reason, sizeof s->reason, NVML_SONAME " is a stub");
        return;
    }
    int error = init();
    if (error != NVML_SUCCESS) {
        snprintf(s->reason, sizeof s->reason, "nvmlInit_v2 fails with %d (%s)", error,
                 nvml_result_text(error));
        return;
    }
    if (version(s->version, sizeof s->version) != NVML_SUCCESS)
        snprintf(s->version, sizeof s->version, "of unknown version");
    error = count(&s->device_count);
    if (error != NVML_SUCCESS) {
        snprintf(s->reason, sizeof s->reason, "nvmlDeviceGetCount_v2 fails with %d (%s)", error,
                 nvml_result_text(error));
        return;
    }
    for (unsigned i = 0; i < s->device_count; i++) {
        void *device = NULL;
        error = handle(i, &device);
        if (error == NVML_SUCCESS)
            error = power(device, &milliwatts);
        if (error == NVML_SUCCESS)
            s->readable_count++;
        else
            s->error = error;
    }
    s->reason[0] = '\0';
}

bool check_device(const struct patient *p, struct check_result *f)
{
    struct nvml_sight s = {.reason = NVML_SONAME " crashes, or does not answer"};
    if (!p->settings.numbers[SETTING_DEVICE])
        return false;
    aside_run(ask, &s, sizeof s, NULL, NVML_SECONDS);
    const char *plural = s.device_count == 1 ? "" : "s";
    if (s.reason[0] || s.device_count == 0)
        return check_result_set(f, CHECK_LIMITED,
                                "make nvidia-smi list a GPU here; in a container, "
                                "NVIDIA_DRIVER_CAPABILITIES must have 'utility'",
                                "no counters of the devices: %s",
                                s.reason[0] ? s.reason : "NVML sees no device");
    if (s.readable_count < s.device_count)
        return check_result_set(
            f, CHECK_LIMITED, "see what nvidia-smi -q -d POWER says; a virtual GPU has no power",
            "NVML tells the power of %u of %u device%s (error %d: %s; driver %s)", s.readable_count,
            s.device_count, plural, s.error, nvml_result_text(s.error), s.version);
    return check_result_set(f, CHECK_OK, NULL, "NVML tells the power of %u device%s (driver %s)",
                            s.device_count, plural, s.version);
}
