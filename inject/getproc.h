/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress: the way by which every libcudart and most libraries find the driver. The real
 * function answers first; its answer is replaced by our wrapper only if it is a function of the
 * hook table, known by its address, or else by name, version and flags.
 */
#ifndef GPUPROF_INJECT_GETPROC_H
#define GPUPROF_INJECT_GETPROC_H

#include <stdint.h>

/*
 * What the code at `caller`, which asked for a driver function by name and was answered `real`, is
 * to get: the wrapper, or `real` itself. NULL, if that is a wrapper of something that is not there.
 */
void *getproc_substitute(void *real, const char *name, int version, uint64_t flags,
                         uintptr_t caller);

/* The largest CUDA version that anybody asked for (12040 = 12.4); 0 if nobody did. */
uint32_t getproc_version_asked(void);

#endif
