/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that asks CUPTI for finished records, regularly and on demand. A flush may take long,
 * or never return; then only this thread waits. */
#ifndef GPUPROF_INJECT_GPU_FLUSH_H
#define GPUPROF_INJECT_GPU_FLUSH_H

#include <stdbool.h>

bool gpu_flush_start(void);

/* Announces that the next flush is the last one: unfinished records are taken as they are. */
void gpu_flush_is_last(void);

#endif
