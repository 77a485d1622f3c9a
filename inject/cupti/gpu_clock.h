/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of CUPTI's records. It should be the one that gpu.c registered. But contexts created
 * earlier keep their old clock, and another CUPTI client may register its own: CLOCK_REALTIME,
 * CLOCK_MONOTONIC, or raw ticks.
 */
#ifndef GPUPROF_INJECT_GPU_CLOCK_H
#define GPUPROF_INJECT_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Call it before reading a buffer of records: compares the clocks. */
void gpu_clock_look(void);

/* Converts to ticks of our clock. Returns false if `time` is in the process's life on none of these
 * clocks. */
bool gpu_clock_ticks(uint64_t time, uint64_t *ticks);

#endif
