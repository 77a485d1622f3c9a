/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of our own, zeroed. We never allocate from the program's heap. */
#ifndef GPUPROF_INJECT_PAGES_H
#define GPUPROF_INJECT_PAGES_H

#include <stddef.h>
#include <sys/mman.h> /* for munmap, which frees the pages */

/* Returns NULL with errno set on failure. The kernel assigns pages on first use, also after
 * mlockall(MCL_FUTURE). */
void *pages_map(size_t bytes);

/* The same for a file, shared, from its start; `protection` as for mmap. */
void *pages_map_file(size_t bytes, int protection, int fd);

#endif
