/* SPDX-License-Identifier: Apache-2.0 */
#include "base/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/*
 * After mlockall(MCL_FUTURE) the kernel fills and locks a new mapping at once, and refuses one
 * beyond RLIMIT_MEMLOCK. So we map one page, unlock it and let the mapping grow: it grows with the
 * attributes of that page. Only emptying locked pages fails.
 */
static void *map(size_t bytes, int protection, int flags, int fd)
{
    size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page = mmap(NULL, page_bytes, protection, flags, fd, 0);
    if (page == MAP_FAILED)
        return NULL;
    if (madvise(page, page_bytes, MADV_DONTNEED) < 0)
        munlock(page, page_bytes);
    void *all = mremap(page, page_bytes, bytes, MREMAP_MAYMOVE);
    if (all != MAP_FAILED)
        return all;
    int error = errno;
    munmap(page, page_bytes);
    errno = error;
    return NULL;
}

void *pages_map(size_t bytes)
{
    return map(bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

void *pages_map_file(size_t bytes, int protection, int fd)
{
    return map(bytes, protection, MAP_SHARED, fd);
}
