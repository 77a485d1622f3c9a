/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that CUPTI reports although it is not to be recorded. A stop turns off calls first and
 * CUPTI's kinds second; a start turns them on in the other order (recorded.c). Changing kinds takes
 * milliseconds while other threads run: what they launch then has records, but no call in the
 * recording.
 */
#ifndef GPUPROF_INJECT_GPU_UNWANTED_H
#define GPUPROF_INJECT_GPU_UNWANTED_H

#include <stdbool.h>
#include <stdint.h>

/* Notes that a call with this correlation id is not recorded. Any thread; async-signal-safe. */
void gpu_unwanted_note(uint32_t correlation);

/* Was the id of a record of this kind noted? Only for kinds that a stop turns off. Only the parser
 * calls it. */
bool gpu_unwanted_is(unsigned kind, uint32_t correlation);

#endif
