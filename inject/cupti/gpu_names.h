/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel names in CUPTI's records, by number. From the parser's thread only. */
#ifndef GPUPROF_INJECT_GPU_NAMES_H
#define GPUPROF_INJECT_GPU_NAMES_H

#include <stdint.h>

struct thread;

/*
 * The number of a name: 1, 2, ...; a KERNEL_NAME record is appended when it is met for the first
 * time, with the time `begin` (ticks) of that kernel. 0: no name, or no room for it (counted).
 */
uint64_t gpu_name(struct thread *me, const char *name, uint64_t begin);

/* The names that follow are those of another buffer: an address may have got another text, as its
 * module has gone. */
void gpu_names_next_buffer(void);

#endif
