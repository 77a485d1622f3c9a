/* SPDX-License-Identifier: Apache-2.0 */
#include "file/stream_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "error.h"

#define NEAR_BYTES 2048 /* a look that is no farther behind the last one follows it */

static void drop_window(struct stream_file *f)
{
    free(f->window);
    f->window = NULL;
    f->window_bytes = 0;
}

static void pool_remove(struct file_pool *pool, unsigned at)
{
    close(pool->open[at]->fd);
    pool->open[at]->fd = -1;
    drop_window(pool->open[at]);
    pool->open[at] = pool->open[--pool->count];
}

static void pool_close_oldest(struct file_pool *pool)
{
    unsigned oldest = 0;
    for (unsigned i = 1; i < pool->count; i++)
        if (pool->open[i]->used < pool->open[oldest]->used)
            oldest = i;
    pool_remove(pool, oldest);
}

/* The other half is for output, and for what does not fit into memory. */
static unsigned pool_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 >= FILE_POOL_MAX)
        return FILE_POOL_MAX;
    return limit.rlim_cur < 4 ? 1 : (unsigned)(limit.rlim_cur / 2);
}

/* O_NONBLOCK so that a FIFO in the place of a file does not hold us up. */
static int pool_open(struct stream_file *f, struct file_pool *pool, struct stat *status)
{
    if (pool->count >= pool_max())
        pool_close_oldest(pool);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    while (fd < 0 && (errno == EMFILE || errno == ENFILE) && pool->count) {
        pool_close_oldest(pool);
        fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    }
    if (fd < 0)
        return GPUPROF_IO;
    if (fstat(fd, status) < 0) {
        int saved = errno;
        close(fd);
        errno = saved;
        return GPUPROF_IO;
    }
    f->fd = fd;
    f->used = ++pool->clock;
    pool->open[pool->count++] = f;
    return 0;
}

static int pool_use(struct stream_file *f, struct file_pool *pool)
{
    f->used = ++pool->clock;
    if (f->fd >= 0)
        return 0;
    struct stat status;
    int error = pool_open(f, pool, &status);
    if (error < 0)
        return error;
    if (status.st_dev != f->device || status.st_ino != f->inode) {
        errno = ESTALE;
        return GPUPROF_IO;
    }
    return 0;
}

static void close_file(struct stream_file *f, struct file_pool *pool)
{
    for (unsigned i = 0; i < pool->count; i++) {
        if (pool->open[i] == f) {
            pool_remove(pool, i);
            break;
        }
    }
    if (f->is_own)
        close(f->fd);
    f->is_own = false;
    drop_window(f);
}

void stream_file_release(struct stream_file *f, struct file_pool *pool)
{
    close_file(f, pool);
    free(f->path);
    f->path = NULL;
}

int stream_file_renew(struct stream_file *f, struct file_pool *pool)
{
    struct stat status;
    if (f->fd >= 0 && stat(f->path, &status) == 0 && status.st_dev == f->device &&
        status.st_ino == f->inode)
        return 0;
    close_file(f, pool);
    int error = pool_open(f, pool, &status);
    if (error == 0 && !S_ISREG(status.st_mode))
        error = GPUPROF_NOT_OURS;
    if (error < 0)
        return error;
    f->device = status.st_dev;
    f->inode = status.st_ino;
    f->size = (uint64_t)status.st_size;
    return 0;
}

int stream_file_init(struct stream_file *f, struct file_pool *pool, const char *path)
{
    *f = (struct stream_file){.fd = -1};
    f->path = strdup(path);
    if (!f->path)
        return GPUPROF_NO_MEMORY;
    int error = stream_file_renew(f, pool);
    if (error < 0) {
        int saved = errno;
        stream_file_release(f, pool);
        errno = saved;
    }
    return error;
}

int stream_file_exchange(struct stream_file *f, struct file_pool *pool, int fd)
{
    close_file(f, pool);
    f->fd = fd;
    f->is_own = true;
    return stream_file_resize(f, pool);
}

int stream_file_resize(struct stream_file *f, struct file_pool *pool)
{
    struct stat status;
    int error = pool_use(f, pool);
    if (error < 0)
        return error;
    if (fstat(f->fd, &status) < 0)
        return GPUPROF_IO;
    f->size = (uint64_t)status.st_size;
    return 0;
}

ssize_t stream_file_read(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                         uint8_t *data, size_t count)
{
    int error = pool_use(f, pool);
    if (error < 0)
        return error;
    if (offset >= f->size)
        return 0;
    if (count > f->size - offset)
        count = (size_t)(f->size - offset);
    return file_read_at(f->fd, offset, data, count);
}

ssize_t stream_file_look(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                         size_t count, size_t ahead, const uint8_t **data)
{
    int error = pool_use(f, pool);
    if (error < 0)
        return error;
    assert(count <= STREAM_WINDOW_BYTES);
    uint64_t end = f->window_from + f->window_bytes;
    bool is_near = offset + STREAM_WINDOW_BYTES > f->window_from && offset < end + NEAR_BYTES;
    if (offset < f->window_from || offset > end || (end - offset < count && end < f->size)) {
        size_t want = is_near && 2 * f->window_bytes > ahead ? 2 * f->window_bytes : ahead;
        want = want < count ? count : want < STREAM_WINDOW_BYTES ? want : STREAM_WINDOW_BYTES;
        want = offset < f->size && f->size - offset < want ? (size_t)(f->size - offset) : want;
        drop_window(f);
        if (!(f->window = malloc(want)))
            return GPUPROF_NO_MEMORY;
        ssize_t got = stream_file_read(f, pool, offset, f->window, want);
        if (got < 0)
            return got;
        f->window_from = offset;
        f->window_bytes = (size_t)got;
    }
    *data = f->window + (offset - f->window_from);
    return (ssize_t)(f->window_from + f->window_bytes - offset);
}

uint64_t stream_file_data(struct stream_file *f, struct file_pool *pool, uint64_t offset)
{
    if (pool_use(f, pool) < 0)
        return offset; /* who reads there has the error */
    off_t data = lseek(f->fd, (off_t)offset, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? f->size : offset;
    return (uint64_t)data;
}

int stream_file_header(struct stream_file *f, struct file_pool *pool, struct stream_header *h)
{
    uint8_t data[STREAM_HEADER_BYTES_MAX];
    ssize_t got = stream_file_read(f, pool, 0, data, sizeof data);
    if (got < 0)
        return GPUPROF_IO;
    int size = stream_header_read(h, data, (size_t)got);
    if (size < 0)
        return size;
    f->first_block = (uint64_t)size;
    return 0;
}
