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
#include "base/memory.h"
#include "bytes.h"
#include "crc32c.h"
#include "error.h"

#define NEAR_BYTES 2048 /* a read this close behind the last one is sequential */

static void drop_window(struct stream_file *f)
{
    free(f->window);
    f->window = NULL;
    f->window_bytes = 0;
}

static void pool_remove(struct file_pool *pool, unsigned at)
{
    file_close(pool->open[at]->fd);
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

/* The other half is for output and spool files. */
static unsigned pool_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur / 2 >= FILE_POOL_MAX)
        return FILE_POOL_MAX;
    return limit.rlim_cur < 4 ? 1 : (unsigned)(limit.rlim_cur / 2);
}

/* O_NONBLOCK, so that opening a FIFO does not block. */
static int pool_open(struct stream_file *f, struct file_pool *pool, struct stat *status)
{
    if (pool->count >= pool_max())
        pool_close_oldest(pool);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return GPUPROF_IO;
    if (fstat(fd, status) < 0) {
        file_close(fd);
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

static void stream_file_close_file(struct stream_file *f, struct file_pool *pool)
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
    stream_file_close_file(f, pool);
    free(f->path);
    f->path = NULL;
}

int stream_file_renew(struct stream_file *f, struct file_pool *pool)
{
    struct stat status;
    if (f->fd >= 0 && stat(f->path, &status) == 0 && status.st_dev == f->device &&
        status.st_ino == f->inode)
        return 0;
    stream_file_close_file(f, pool);
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
    f->path = memory_text(path);
    int error = stream_file_renew(f, pool);
    if (error < 0)
        stream_file_release(f, pool);
    return error;
}

int stream_file_exchange(struct stream_file *f, struct file_pool *pool, int fd)
{
    stream_file_close_file(f, pool);
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

/* Reads up to `count` bytes, fewer only at the file's end. Returns their number or GPUPROF_IO. */
static ssize_t stream_file_read(struct stream_file *f, struct file_pool *pool, uint64_t offset,
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

/* Makes `count` bytes at `offset` visible at *data until the next read of a file: at most
 * STREAM_WINDOW_BYTES, fewer only at the file's end. If it must read, it reads `ahead` bytes, and
 * more with each sequential read, so that small blocks need few reads. Returns the visible bytes
 * or GPUPROF_IO. */
static ssize_t stream_file_look(struct stream_file *f, struct file_pool *pool, uint64_t offset,
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
        f->window = memory_from(malloc(want + 1));
        ssize_t got = stream_file_read(f, pool, offset, f->window, want);
        if (got < 0)
            return got;
        f->window_from = offset;
        f->window_bytes = (size_t)got;
    }
    *data = f->window + (offset - f->window_from);
    return (ssize_t)(f->window_from + f->window_bytes - offset);
}

int stream_file_block(struct stream_file *f, struct file_pool *pool, uint64_t offset,
                      struct block_header *h, uint8_t *data, const uint8_t **stored)
{
    size_t ahead = f->block_bytes > STREAM_WINDOW_BYTES ? 0 : 2 * (size_t)f->block_bytes;
    ssize_t there = stream_file_look(f, pool, offset, BLOCK_HEADER_BYTES_MAX, ahead, stored);
    if (there < 0)
        return (int)there;
    int size = block_header_read(h, *stored, (size_t)there);
    if (size <= 0)
        return GPUPROF_DAMAGED; /* the file changed meanwhile */
    f->block_bytes = (uint32_t)size + h->stored_bytes;
    if (f->block_bytes <= STREAM_WINDOW_BYTES) {
        there = stream_file_look(f, pool, offset, f->block_bytes, 0, stored);
        *stored += size;
        there -= there < 0 ? 0 : size;
    } else {
        *stored = data;
        there = stream_file_read(f, pool, offset + (uint64_t)size, data, h->stored_bytes);
    }
    return there < 0 ? (int)there : there < (ssize_t)h->stored_bytes ? GPUPROF_DAMAGED : size;
}

/* Returns the next offset with data that is not a hole; the file's size if none. */
static uint64_t stream_file_data(struct stream_file *f, struct file_pool *pool, uint64_t offset)
{
    if (pool_use(f, pool) < 0)
        return offset; /* a read there reports the error */
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

int stream_header_of(const char *path, struct stream_header *h)
{
    uint8_t data[STREAM_HEADER_BYTES_MAX];
    ssize_t got = file_head(path, data, sizeof data);
    return got < 0 ? (int)got : stream_header_read(h, data, (size_t)got);
}

/* ---- block by block -------------------------------------------------------------------------- */

#define SKIPPABLE_MAGIC      0x184D2A50u /* 16 magics, RFC 8878 section 3.1.2 */
#define SKIPPABLE_MAGIC_MASK 0xFFFFFFF0u

enum place { PLACE_BLOCK, PLACE_FRAME, PLACE_END, PLACE_TORN, PLACE_NOTHING };

void stream_scan_init(struct stream_scan *s, struct stream_file *file, struct file_pool *pool,
                      uint64_t offset)
{
    *s = (struct stream_scan){.file = file, .pool = pool, .offset = offset, .search_from = offset};
}

/* Returns what is at `offset`; for PLACE_BLOCK and PLACE_FRAME sets *size to its size. */
static int place_at(struct stream_scan *s, uint64_t offset, struct block_header *h, uint64_t *size)
{
    const uint8_t *data;
    if (offset >= s->file->size)
        return PLACE_END;
    ssize_t there = stream_file_look(s->file, s->pool, offset, BLOCK_HEADER_BYTES_MAX, 0, &data);
    if (there < 0)
        return (int)there;
    if (there == 0)
        return PLACE_END; /* the file has shrunk */
    int read = block_header_read(h, data, (size_t)there);
    if (read > 0) {
        *size = (uint64_t)read;
        return PLACE_BLOCK;
    }
    if (read == GPUPROF_TRUNCATED) {
        /* A partial header that begins like a real one is torn. */
        uint8_t magic[4];
        store_u32(magic, BLOCK_FRAME_MAGIC);
        size_t compare = there < 4 ? (size_t)there : 4;
        return memcmp(data, magic, compare) == 0 ? PLACE_TORN : PLACE_NOTHING;
    }
    /* A skippable frame that a later version wrote between blocks, if it fits into the file. */
    uint32_t frame_magic = load_u32(data);
    if (read == 0 && (frame_magic & SKIPPABLE_MAGIC_MASK) == SKIPPABLE_MAGIC &&
        frame_magic != BLOCK_FRAME_MAGIC && there >= 8) {
        *size = (uint64_t)load_u32(data + 4) + 8;
        return *size <= s->file->size - offset ? PLACE_FRAME : PLACE_NOTHING;
    }
    return PLACE_NOTHING;
}

/* Finds the next valid block header at or after `from`; the file's size if none. */
static int search(struct stream_scan *s, uint64_t from, uint64_t *found)
{
    uint8_t magic[4];
    store_u32(magic, BLOCK_FRAME_MAGIC);
    uint64_t at = from;
    while (at < s->file->size) {
        const uint8_t *data;
        ssize_t there = stream_file_look(s->file, s->pool, at, BLOCK_HEADER_BYTES_MAX,
                                         STREAM_WINDOW_BYTES, &data);
        if (there < 0)
            return (int)there;
        if (there < BLOCK_HEADER_BYTES)
            break;
        const uint8_t *p = memmem(data, (size_t)there, magic, sizeof magic);
        if (!p) {
            at = stream_file_data(s->file, s->pool, at + (uint64_t)there - 3);
            continue;
        }
        at += (uint64_t)(p - data);
        struct block_header h;
        uint64_t size;
        int place = place_at(s, at, &h, &size);
        if (place < 0)
            return place;
        if (place == PLACE_BLOCK) {
            *found = at;
            return 0;
        }
        at++;
    }
    *found = s->file->size;
    return 0;
}

/* Skips what is not a block. Returns 1 if a block header is at s->offset then. */
static int resynchronise(struct stream_scan *s, bool torn)
{
    uint64_t found = s->file->size;
    int error = search(s, s->search_from, &found);
    if (error < 0)
        return error;
    if (found >= s->file->size && torn) {
        s->torn = s->file->size - s->offset;
        s->offset = s->file->size;
        return 0;
    }
    /* A search from inside the last block may find a header before that block's end. */
    s->skipped += found > s->offset ? found - s->offset : 0;
    s->offset = found;
    s->search_from = found;
    return found < s->file->size;
}

int stream_scan_next(struct stream_scan *s, struct block_place *block)
{
    for (;;) {
        uint64_t size = 0;
        int place = place_at(s, s->offset, &block->header, &size);
        if (place < 0)
            return place;
        if (place == PLACE_END)
            return 0;
        if (place == PLACE_FRAME) {
            /* Its length has no checksum: a search would begin right after it. */
            s->search_from = s->offset + 8;
            s->offset += size;
            continue;
        }
        bool torn = place == PLACE_TORN;
        if (place == PLACE_BLOCK) {
            uint64_t payload = s->offset + size;
            s->search_from = payload;
            if (block->header.stored_bytes <= s->file->size - payload) {
                block->offset = s->offset;
                s->offset = payload + block->header.stored_bytes;
                return 1;
            }
            torn = true;
            s->torn_header_read = true;
            s->torn_header = block->header;
        }
        int more = resynchronise(s, torn);
        if (more <= 0)
            return more;
        s->torn_header_read = false;
    }
}

/* ---- payloads -------------------------------------------------------------------------------- */

int payload_open(struct zstandard *z, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out)
{
    if (crc32c(0, stored, h->stored_bytes) != h->stored_crc)
        return GPUPROF_DAMAGED;
    return zstandard_unpack(z, stored, h->stored_bytes, out, h->payload_bytes);
}

int block_store(struct zstandard *z, struct block_encoder *e, const struct clock_scale *scale,
                struct block_header *h, uint8_t **stored)
{
    static const struct clock_scale identity = {.mult = 1ull << CLOCK_SCALE_SHIFT};
    size_t capacity = block_encode_bytes_max(e), bytes;
    uint8_t *payload = memory_from(malloc(capacity));
    int error = block_encode(e, scale ? scale : &identity, payload, capacity, h);
    if (error == 0)
        *stored = zstandard_pack(z, payload, h->payload_bytes, &bytes);
    free(payload);
    if (error < 0)
        return error;
    h->stored_bytes = (uint32_t)bytes;
    h->stored_crc = crc32c(0, *stored, bytes);
    return 0;
}
