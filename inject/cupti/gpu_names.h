/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of the kernel names in CUPTI's records. Only on the parser's thread. */
#ifndef GPUPROF_INJECT_GPU_NAMES_H
#define GPUPROF_INJECT_GPU_NAMES_H

#include <stdint.h>

struct thread;

/* Returns the number of a name: 1, 2, ... A KERNEL_NAME record with the time `begin` (ticks) is
 * appended when a name is first used. 0: no name, or no space for it (counted). */
uint64_t gpu_name(struct thread *me, const char *name, uint64_t begin);

/* The names that follow come from another buffer: an address may have another text now, since a
 * module was unloaded. */
void gpu_names_next_buffer(void);

#endif
