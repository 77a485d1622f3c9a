/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that asks CUPTI for finished records, now and then and on demand: a flush may take
 * long, or for ever, and then only this thread waits.
 */
#ifndef GPUPROF_INJECT_GPU_FLUSH_H
#define GPUPROF_INJECT_GPU_FLUSH_H

#include <stdbool.h>

bool gpu_flush_start(void);

/* The next flush is at the end: what is not finished comes as it is. */
void gpu_flush_is_last(void);

#endif
