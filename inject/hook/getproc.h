/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress: the way by which every libcudart and most libraries find the driver. The real
 * function answers first; its answer is replaced by our wrapper only if it is a function of the
 * hook table, known by its address, or else by name, version and flags.
 */
#ifndef GPUPROF_INJECT_GETPROC_H
#define GPUPROF_INJECT_GETPROC_H

#include <stdint.h>

struct thread;

/*
 * What the code at `caller`, which asked for a driver function by name and was answered `real`, is
 * to get: the wrapper, or `real` itself. NULL, if that is a wrapper of something that is not there.
 */
void *getproc_substitute(void *real, const char *name, int version, uint64_t flags,
                         uintptr_t caller);

/* META record "cuda_asked", if anybody has asked: the largest CUDA version (12040 = 12.4). */
void getproc_tell(struct thread *writer);

#endif
