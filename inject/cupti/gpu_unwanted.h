/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that CUPTI tells of and nobody wants. Recording stops calls first and CUPTI's kinds after
 * them, and starts them in the other order (recorded.c). Turning kinds takes milliseconds beside
 * other threads: what they launch then has records, and no call in the recording.
 */
#ifndef GPUPROF_INJECT_GPU_UNWANTED_H
#define GPUPROF_INJECT_GPU_UNWANTED_H

#include <stdbool.h>
#include <stdint.h>

/* A call began that CUPTI tells of under that id, and that is left out. By any thread;
 * async-signal-safe. */
void gpu_unwanted_note(uint32_t correlation);

/* Was that noted of the id of a record of this kind, of those that go off in a stop? By the parser
 * alone. */
bool gpu_unwanted_is(unsigned kind, uint32_t correlation);

#endif
