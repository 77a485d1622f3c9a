/* SPDX-License-Identifier: Apache-2.0 */
/* The thread that converts CUPTI's buffers into our records. It stores them in chunks like any
 * other thread: they survive a kill. */
#ifndef GPUPROF_INJECT_GPU_PARSE_H
#define GPUPROF_INJECT_GPU_PARSE_H

#include <stdbool.h>
#include <stdint.h>

bool gpu_parse_start(void);

/* Returns true when all buffers filled before the call are parsed and the thread has released its
 * chunk to the writer; false after `ns`. Async-signal-safe. */
bool gpu_parse_drain(uint64_t ns);

#endif
