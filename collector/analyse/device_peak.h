/* SPDX-License-Identifier: Apache-2.0 */
/* Peak rates of devices by their exact names. Nothing is guessed for other names. */
#ifndef GPUPROF_COLLECTOR_DEVICE_PEAK_H
#define GPUPROF_COLLECTOR_DEVICE_PEAK_H

#include <stdint.h>

/* Dense products in GFLOP/s (int8: GOP/s), memory bandwidth in GB/s; 0: not known. */
struct device_peaks {
    const char *name;
    uint32_t double_, single, tf32, half, bfloat16, float8, int8;
    uint32_t bandwidth;
};

/* The peaks of the device of that name; NULL: not known. */
const struct device_peaks *device_peaks_of(const char *name);

/* A number for the peaks of that name (1: no peaks are known), and the peaks of a number. */
uint64_t device_peaks_number(const char *name);
const struct device_peaks *device_peaks_at(uint64_t number);

/* GFLOP/s of dense products of a c10::ScalarType; 0: not known. */
uint32_t device_peak(const char *name, uint8_t type);

#endif
