/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The clock of CUPTI's records. They should be on the one that gpu.c registered; but a context that
 * existed before keeps its old one, and another client of CUPTI's registers its own:
 * CLOCK_REALTIME, CLOCK_MONOTONIC, or raw ticks.
 */
#ifndef GPUPROF_INJECT_GPU_CLOCK_H
#define GPUPROF_INJECT_GPU_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* To be called before a buffer of records is read: how the clocks stand to each other now. */
void gpu_clock_look(void);

/* Ticks of our clock; false if `time` lies in the process's life on none of these clocks. */
bool gpu_clock_ticks(uint64_t time, uint64_t *ticks);

#endif
