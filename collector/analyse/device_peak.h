/* SPDX-License-Identifier: Apache-2.0 */
/* What devices can do at most, by their exact names: nothing is guessed of others. */
#ifndef GPUPROF_COLLECTOR_DEVICE_PEAK_H
#define GPUPROF_COLLECTOR_DEVICE_PEAK_H

#include <stdint.h>

/* Of dense products, GFLOP/s or GOP/s, and of its memory, GB/s; 0: not known. */
struct device_peaks {
    const char *name;
    uint32_t double_, single, tf32, half, bfloat16, float8, int8;
    uint32_t bandwidth;
};

/* NULL: of a device of that name nothing is known. */
const struct device_peaks *device_peaks_of(const char *name);

/* The same by a number that stands for the name; 1 for all of which nothing is known. */
uint64_t device_peaks_number(const char *name);
const struct device_peaks *device_peaks_at(uint64_t number);

/* GFLOP/s of dense products of a c10::ScalarType; 0: not known. */
uint32_t device_peak(const char *name, uint8_t type);

#endif
