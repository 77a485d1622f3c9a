/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX: its calls become ranges, marks and labels (user_ranges.h). */
#ifndef GPUPROF_INJECT_NVTX_H
#define GPUPROF_INJECT_NVTX_H

/* By the constructor: NVTX is told to load us, if it is to be recorded. */
void nvtx_load(void);

#endif
