/* SPDX-License-Identifier: Apache-2.0 */
/* What devices can do at most, by their exact names: nothing is guessed of others. */
#ifndef GPUPROF_COLLECTOR_DEVICE_PEAK_H
#define GPUPROF_COLLECTOR_DEVICE_PEAK_H

#include <stdint.h>

/* GFLOP/s of dense products of a c10::ScalarType; 0: not known. */
uint32_t device_peak(const char *name, uint8_t type);

#endif
