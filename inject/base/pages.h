/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of our own, all zero: nothing of ours is in the program's heap. */
#ifndef GPUPROF_INJECT_PAGES_H
#define GPUPROF_INJECT_PAGES_H

#include <stddef.h>
#include <sys/mman.h> /* for munmap, which gives them back */

/* NULL: errno. Storage comes with the first touch, also after mlockall(MCL_FUTURE). */
void *pages_map(size_t bytes);

/* The same of the file, shared, from its beginning; `protection` as mmap's. */
void *pages_map_file(size_t bytes, int protection, int fd);

#endif
