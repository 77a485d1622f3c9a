/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVTX: each copy of it in the process (one per library that embeds it, and libnvToolsExt.so.1)
 * loads the library that NVTX_INJECTION64_PATH names, at its first call, and lets it fill in the
 * functions. That is us, unless the variable names somebody else.
 */
#ifndef GPUPROF_INJECT_NVTX_H
#define GPUPROF_INJECT_NVTX_H

/* Names us in the environment unless somebody is named already; from the constructor. */
void nvtx_announce(void);

#endif
