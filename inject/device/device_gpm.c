/* SPDX-License-Identifier: Apache-2.0 */
#include "device/device_gpm.h"

#include "base/ticks.h"
#include "device/nvml_library.h"
#include "record.h"

#define NS_MIN   100000000u /* the device updates them about this often */
#define PPM      10000.0    /* parts per million in a percent */
#define MIB      1048576.0
#define RATE_MAX 1e15 /* larger values are invalid */

static const struct {
    uint16_t metric; /* nvmlGpmMetricId_t */
    uint16_t argument;
    double unit;
} metrics[] = {
    {NVML_GPM_METRIC_GRAPHICS_UTIL, DEVICE_GPM_GRAPHICS, PPM},
    {NVML_GPM_METRIC_SM_UTIL, DEVICE_GPM_SM, PPM},
    {NVML_GPM_METRIC_SM_OCCUPANCY, DEVICE_GPM_OCCUPANCY, PPM},
    {NVML_GPM_METRIC_ANY_TENSOR_UTIL, DEVICE_GPM_TENSOR, PPM},
    {NVML_GPM_METRIC_DRAM_BW_UTIL, DEVICE_GPM_DRAM, PPM},
    {NVML_GPM_METRIC_FP64_UTIL, DEVICE_GPM_FP64, PPM},
    {NVML_GPM_METRIC_FP32_UTIL, DEVICE_GPM_FP32, PPM},
    {NVML_GPM_METRIC_FP16_UTIL, DEVICE_GPM_FP16, PPM},
    {NVML_GPM_METRIC_INTEGER_UTIL, DEVICE_GPM_INTEGER, PPM},
    {NVML_GPM_METRIC_PCIE_TX_PER_SEC, DEVICE_GPM_PCIE_SENT, MIB},
    {NVML_GPM_METRIC_PCIE_RX_PER_SEC, DEVICE_GPM_PCIE_RECEIVED, MIB},
    {NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, DEVICE_GPM_NVLINK_SENT, MIB},
    {NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, DEVICE_GPM_NVLINK_RECEIVED, MIB},
};

#define METRIC_COUNT (sizeof metrics / sizeof metrics[0])

static nvmlReturn_t begin_with(struct device_gpm *gpm, nvmlDevice_t device)
{
    nvmlGpmSupport_t support = {.version = NVML_GPM_SUPPORT_VERSION};
    nvmlReturn_t result = NVML_CALL(nvmlGpmQueryDeviceSupport, device, &support);
    if (result == NVML_SUCCESS && !support.isSupportedDevice)
        result = NVML_ERROR_NOT_SUPPORTED;
    for (unsigned i = 0; i < 2 && result == NVML_SUCCESS; i++)
        result = NVML_CALL(nvmlGpmSampleAlloc, &gpm->samples[i]);
    return result;
}

/* Converts a value. Values that are not a number, or out of range, are not known. */
static uint64_t device_gpm_known(double value, double unit)
{
    double number = value * unit;
    return number >= 0 && number < RATE_MAX ? (uint64_t)number + 1 : 0;
}

static nvmlReturn_t device_gpm_compare(const struct device_gpm *gpm, uint64_t *args)
{
    static nvmlGpmMetricsGet_t asked; /* used only by the thread that reads */
    asked.version = NVML_GPM_METRICS_GET_VERSION;
    asked.numMetrics = METRIC_COUNT;
    asked.sample1 = gpm->samples[1];
    asked.sample2 = gpm->samples[0];
    for (unsigned i = 0; i < METRIC_COUNT; i++)
        asked.metrics[i] = (nvmlGpmMetric_t){.metricId = metrics[i].metric};
    nvmlReturn_t result = NVML_CALL(nvmlGpmMetricsGet, &asked);
    for (unsigned i = 0; i < METRIC_COUNT && result == NVML_SUCCESS; i++)
        if (asked.metrics[i].nvmlReturn == NVML_SUCCESS)
            args[metrics[i].argument] = device_gpm_known(asked.metrics[i].value, metrics[i].unit);
    return result;
}

nvmlReturn_t device_gpm_read(struct device_gpm *gpm, nvmlDevice_t device, bool is_part,
                             unsigned gpu_instance, uint64_t *args, uint64_t *begin, uint64_t *end)
{
    uint64_t now = ticks_now();
    nvmlReturn_t result = gpm->samples[1] ? NVML_SUCCESS : begin_with(gpm, device);
    *begin = 0;
    if (result != NVML_SUCCESS ||
        (gpm->has_one && clock_scale_ns(&process_clock.scale, now) -
                                 clock_scale_ns(&process_clock.scale, gpm->ticks) <
                             NS_MIN))
        return result;
    nvmlGpmSample_t oldest = gpm->samples[1];
    result = is_part ? NVML_CALL(nvmlGpmMigSampleGet, device, gpu_instance, oldest)
                     : NVML_CALL(nvmlGpmSampleGet, device, oldest);
    if (result != NVML_SUCCESS)
        return result;
    gpm->samples[1] = gpm->samples[0];
    gpm->samples[0] = oldest;
    if (gpm->has_one) {
        result = device_gpm_compare(gpm, args);
        *begin = result == NVML_SUCCESS ? gpm->ticks : 0;
        *end = now;
    }
    gpm->ticks = now;
    gpm->has_one = true;
    return result;
}

void device_gpm_forget(struct device_gpm *gpm)
{
    gpm->has_one = false;
}
