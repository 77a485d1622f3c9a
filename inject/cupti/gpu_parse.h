/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that turns CUPTI's buffers into records of ours, in chunks like any thread's: what it
 * has appended survives a kill.
 */
#ifndef GPUPROF_INJECT_GPU_PARSE_H
#define GPUPROF_INJECT_GPU_PARSE_H

#include <stdbool.h>
#include <stdint.h>

bool gpu_parse_start(void);

/*
 * True when all buffers that were filled before are parsed and the thread has left its chunk to the
 * writer; false if `ns` passed before. Async-signal-safe.
 */
bool gpu_parse_drain(uint64_t ns);

#endif
