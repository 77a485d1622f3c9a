/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX: makes ranges, marks and labels of its calls (user_ranges.h). */
#ifndef GPUPROF_INJECT_NVTX_H
#define GPUPROF_INJECT_NVTX_H

/* Called by the constructor: makes NVTX load this library, if it is to be recorded. */
void nvtx_load(void);

#endif
