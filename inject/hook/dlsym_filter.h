/* SPDX-License-Identifier: Apache-2.0 */
/* Run by our exported dlsym and dlvsym before they jump to the real ones. Only names of the hook
 * table that libcuda or libcudart defines have an effect. */
#ifndef GPUPROF_INJECT_DLSYM_FILTER_H
#define GPUPROF_INJECT_DLSYM_FILTER_H

#include <stdint.h>

/* Two registers wide: the assembly code reads it as a pair. */
struct filter_answer {
    void *address;
    uint64_t answered; /* 0: jump to the real function with the caller's arguments */
};

struct filter_answer dlsym_filter(void *handle, const char *name, uintptr_t caller);
struct filter_answer dlvsym_filter(void *handle, const char *name, const char *version,
                                   uintptr_t caller);

#endif
