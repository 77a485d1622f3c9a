/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress, through which every libcudart and most libraries find the driver's functions.
 * The real function answers first. Its answer is replaced by our wrapper only if it is a function
 * of the hook table, identified by its address, or else by name, version and flags.
 */
#ifndef GPUPROF_INJECT_GETPROC_H
#define GPUPROF_INJECT_GETPROC_H

#include <stdint.h>

struct thread;

/*
 * Returns the function for the code at `caller`, which asked for a driver function by name and got
 * `real`: the wrapper, or `real` itself. NULL if that is a wrapper with no function behind it.
 */
void *getproc_substitute(void *real, const char *name, int version, uint64_t flags,
                         uintptr_t caller);

/* Writes the META record "cuda_asked": the largest CUDA version that was asked for (12040 = 12.4),
 * if any. */
void getproc_report(struct thread *writer);

#endif
