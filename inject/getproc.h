/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuGetProcAddress: the way by which every libcudart and most libraries find the driver. The real
 * function answers first; its answer is replaced by our wrapper only if it is a function of the
 * hook table, known by its address, or else by name, version and flags.
 */
#ifndef GPUPROF_INJECT_GETPROC_H
#define GPUPROF_INJECT_GETPROC_H

#include <stdint.h>

/* The wrapper for the real driver function `real` that was asked for by name, or `real` itself. */
void *getproc_substitute(void *real, const char *name, int version, uint64_t flags);

/* The largest CUDA version that anybody asked for (12040 = 12.4); 0 if nobody did. */
uint32_t getproc_version_asked(void);

#endif
