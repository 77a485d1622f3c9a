/* SPDX-License-Identifier: Apache-2.0 */
/* What NVML tells of how busy a device was between two samples; not on old drivers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim_nvml.h"

#if SIM_NVML_DRIVER > 450

enum { VERSION = 1, NS_MIN = 100000000, PERCENT = 100 };

typedef struct nvmlGpmSample {
    uint64_t now_ns, work_ns;
    unsigned device;
} * nvmlGpmSample_t;

typedef struct {
    unsigned version, isSupportedDevice;
} nvmlGpmSupport_t;

typedef struct {
    unsigned metricId;
    nvmlReturn_t nvmlReturn;
    double value;
    char *names[3];
} nvmlGpmMetric_t;

typedef struct {
    unsigned version, numMetrics;
    nvmlGpmSample_t sample1, sample2;
    nvmlGpmMetric_t metrics[];
} nvmlGpmMetricsGet_t;

NVML nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support)
{
    struct nvml_call call;
    nvmlReturn_t result = nvml_enter(&call, __func__, device, support);
    if (result == NVML_SUCCESS && support->version != VERSION)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        support->isSupportedDevice = nvml_number("SIMNVML_GPM", 1) != 0;
    return nvml_leave(&call, result);
}

NVML nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample)
{
    *sample = calloc(1, sizeof **sample);
    return NVML_SUCCESS;
}

static nvmlReturn_t take(const char *name, nvmlDevice_t device, bool is_allowed,
                         nvmlGpmSample_t sample)
{
    struct nvml_call call;
    uint64_t used;
    nvmlReturn_t result = nvml_enter(&call, name, device, sample);
    if (result == NVML_SUCCESS && !is_allowed)
        result = NVML_ERROR_NOT_SUPPORTED;
    if (result == NVML_SUCCESS) {
        sample->now_ns = nvml_now_ns();
        sample->device = device->index;
        nvml_meter(device->index, sample->now_ns, &sample->work_ns, &used);
        nvml_say(&call, " now=%llu work=%llu", (unsigned long long)sample->now_ns,
                 (unsigned long long)sample->work_ns);
    }
    return nvml_leave(&call, result);
}

NVML nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample)
{
    return take(__func__, device, !nvml_has_parts(), sample);
}

NVML nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned instance,
                                      nvmlGpmSample_t sample)
{
    return take(__func__, device, nvml_has_parts() && instance == SIM_MIG_INSTANCE, sample);
}

/* Work of one piece at a time has all multiprocessors, and half of their warps. */
static double metric(unsigned id, double share)
{
    switch (id) {
    case 1:
    case 2: return PERCENT * share;
    case 3: return PERCENT * share / 2;
    case 5: return PERCENT * share / 4;
    case 10: return PERCENT * share / 5;
    case 11: return 0;
    case 12: return PERCENT * share / 8;
    case 13: return NAN; /* as if nothing was counted */
    case 20: return 1000 * share;
    case 21: return 500 * share;
    default: return -1;
    }
}

NVML nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *asked)
{
    if (!asked || asked->version != VERSION || !asked->sample1 || !asked->sample2 ||
        asked->sample1->device != asked->sample2->device)
        return NVML_ERROR_INVALID_ARGUMENT;
    uint64_t ns = asked->sample2->now_ns - asked->sample1->now_ns;
    if (asked->sample2->now_ns < asked->sample1->now_ns || ns < NS_MIN)
        return NVML_ERROR_NO_DATA;
    double share = (double)(asked->sample2->work_ns - asked->sample1->work_ns) / (double)ns;
    for (unsigned i = 0; i < asked->numMetrics; i++) {
        nvmlGpmMetric_t *m = &asked->metrics[i];
        m->value = metric(m->metricId, share < 1 ? share : 1);
        m->nvmlReturn = m->value < 0 ? NVML_ERROR_NOT_SUPPORTED : NVML_SUCCESS;
    }
    return NVML_SUCCESS;
}

#endif
