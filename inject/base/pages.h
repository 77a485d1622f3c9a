/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of our own, all zero: nothing of ours is in the program's heap. */
#ifndef GPUPROF_INJECT_PAGES_H
#define GPUPROF_INJECT_PAGES_H

#include <stddef.h>
#include <sys/mman.h>

/* NULL: errno. Storage comes with the first touch. */
static inline void *pages_map(size_t bytes)
{
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return p == MAP_FAILED ? NULL : p;
}

#endif
