/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <isa-l.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/memory.h"
#include "base/workers.h"
#include "base/zstandard.h"
#include "bytes.h"
#include "error.h"
#include "stream.h"

/* ---- compression ----------------------------------------------------------------------------- */

#define LEVEL         2
#define ZSTREAM_BYTES (1u << 17) /* compressed bytes per write */
#define PART_BYTES    (1u << 18) /* bytes of text compressed at a time */

/* gzip, raw deflate (for an archive's member), or zstd. */
enum zstream_form { ZSTREAM_GZIP, ZSTREAM_RAW, ZSTREAM_ZSTD };

struct zstream {
    enum zstream_form form;
    int fd;
    struct zstream_sums sums;
    struct isal_zstream isal;
    struct zstandard zstandard;
    uint8_t level_buffer[ISAL_DEF_LVL2_DEFAULT];
    uint8_t buffer[ZSTREAM_BYTES];
    size_t held; /* waiting for the next part */
    char part[PART_BYTES];
};

/* Compresses into the open file `fd`, which the caller closes. */
static struct zstream *zstream_create(int fd, enum zstream_form form)
{
    struct zstream *z = memory_new(1, sizeof *z);
    z->fd = fd;
    z->form = form;
    isal_deflate_init(&z->isal);
    z->isal.level = LEVEL;
    z->isal.level_buf = z->level_buffer;
    z->isal.level_buf_size = sizeof z->level_buffer;
    z->isal.gzip_flag = form == ZSTREAM_GZIP ? IGZIP_GZIP : IGZIP_DEFLATE;
    return z;
}

/* Compresses and writes. Returns 0 or an errno. */
static int feed(struct zstream *z, const char *data, size_t length, bool ends)
{
    bool more = true;
    int error = 0;
    z->isal.next_in = (uint8_t *)(uintptr_t)data;
    z->isal.avail_in = (uint32_t)length;
    z->isal.end_of_stream = ends;
    while (more && !error) {
        uint8_t *end = z->buffer;
        if (z->form == ZSTREAM_ZSTD) {
            more = zstandard_feed(&z->zstandard, &data, &length, ends, &end,
                                  z->buffer + ZSTREAM_BYTES);
        } else {
            z->isal.next_out = z->buffer;
            z->isal.avail_out = ZSTREAM_BYTES;
            if (isal_deflate(&z->isal) != COMP_OK)
                return EIO;
            end = z->isal.next_out;
            more = z->isal.avail_in || !z->isal.avail_out;
        }
        z->sums.compressed += (uint64_t)(end - z->buffer);
        error = file_write_next(z->fd, z->buffer, (size_t)(end - z->buffer));
    }
    return error;
}

/* Returns 0, or the errno of a failed write. ISA-L's output depends on the size of its input: with
 * fixed parts equal text gives equal files.
 */
static int zstream_write(struct zstream *z, const char *data, size_t length)
{
    int error = 0;
    if (z->form == ZSTREAM_RAW)
        z->sums.crc = crc32_gzip_refl(z->sums.crc, (const uint8_t *)data, length);
    z->sums.bytes += length;
    while (length && !error) {
        size_t taken = PART_BYTES - z->held < length ? PART_BYTES - z->held : length;
        bool is_whole = !z->held && taken == PART_BYTES;
        if (!is_whole)
            memcpy(z->part + z->held, data, taken);
        z->held += taken;
        if (z->held == PART_BYTES) {
            error = feed(z, is_whole ? data : z->part, PART_BYTES, false);
            z->held = 0;
        }
        data += taken;
        length -= taken;
    }
    return error;
}

/* Frees it; `sums` may be NULL. Returns 0 or an errno. */
static int zstream_end(struct zstream *z, struct zstream_sums *sums)
{
    int error = feed(z, z->part, z->held, true);
    if (sums)
        *sums = z->sums;
    zstandard_release(&z->zstandard);
    free(z);
    return error;
}

size_t zstream_pack(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    struct isal_zstream isal = {0}; /* isal_deflate_init does not set all members */
    uint8_t level_buffer[ISAL_DEF_LVL1_DEFAULT];
    isal_deflate_stateless_init(&isal);
    isal.level = 1;
    isal.level_buf = level_buffer;
    isal.level_buf_size = sizeof level_buffer;
    isal.gzip_flag = IGZIP_ZLIB;
    isal.end_of_stream = 1;
    isal.next_in = (uint8_t *)(uintptr_t)data;
    isal.avail_in = (uint32_t)length;
    isal.next_out = out;
    isal.avail_out = (uint32_t)room;
    return isal_deflate_stateless(&isal) == COMP_OK ? isal.total_out : 0;
}

/* ---- in the background ---------------------------------------------------------------------- */

/* A thread that writes a full buffer while the next one is filled. */
struct background {
    pthread_t thread;
    sem_t filled, free; /* `buffer` */
    char *buffer;       /* owned */
    size_t length;      /* 0: the end */
    atomic_int error;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0) /* a signal came */
        ;
}

static int output_write_out(struct output *o, const char *data, size_t length)
{
    if (o->sink)
        return o->sink(o->sink_context, data, length);
    return o->zstream ? zstream_write(o->zstream, data, length)
                      : file_write_next(o->fd, data, length);
}

static void *output_work(void *context)
{
    struct output *o = context;
    struct background *b = o->background;
    for (wait_for(&b->filled); b->length; wait_for(&b->filled)) {
        if (!b->error)
            b->error = output_write_out(o, b->buffer, b->length);
        sem_post(&b->free);
    }
    return NULL;
}

/* Without a thread, there is none. */
static void start_background(struct output *o)
{
    struct background *b = o->background = memory_new(1, sizeof *b);
    o->in_background = false;
    sem_init(&b->filled, 0, 0);
    sem_init(&b->free, 0, 1);
    b->buffer = memory_from(malloc(OUTPUT_BUFFER_BYTES));
    if (parallel_start(&b->thread, output_work, o))
        return;
    free(b->buffer);
    free(b);
    o->background = NULL;
}

/* Hands over the first `length` bytes of the buffer. Returns 0 or an earlier errno. */
static int hand_over(struct output *o, size_t length)
{
    struct background *b = o->background;
    wait_for(&b->free);
    char *empty = b->buffer;
    b->buffer = o->buffer;
    b->length = length;
    o->buffer = empty;
    int error = b->error;
    sem_post(&b->filled);
    return error;
}

/* Waits until all is done. Returns 0 or the first errno. */
static int end_background(struct output *o)
{
    struct background *b = o->background;
    (void)hand_over(o, 0);
    pthread_join(b->thread, NULL);
    int error = b->error;
    free(b->buffer);
    free(b);
    return error;
}

static const struct {
    const char *ending;
    enum zstream_form form;
} packings[] = {{".gz", ZSTREAM_GZIP}, {".zst", ZSTREAM_ZSTD}};

/* Returns the compression for a name of that `length`; -1: none. */
static int packing_of(const char *name, size_t length)
{
    for (int i = 0; i < (int)(sizeof packings / sizeof packings[0]); i++) {
        size_t bytes = strlen(packings[i].ending);
        if (length > bytes && strncasecmp(name + length - bytes, packings[i].ending, bytes) == 0)
            return i;
    }
    return -1;
}

size_t output_plain_length(const char *name, size_t length)
{
    int packing = packing_of(name, length);
    return packing < 0 ? length : length - strlen(packings[packing].ending);
}

static void release(struct output *o)
{
    if (o->stream)
        fclose(o->stream);
    free(o->buffer);
    *o = (struct output){.fd = -1, .file.fd = -1};
}

/* Returns true if the file begins like a stream file or a live file. */
static bool is_recording(const char *path)
{
    uint8_t head[16] = {0};
    return file_head(path, head, sizeof head) == sizeof head &&
           load_u32(head) == STREAM_FRAME_MAGIC && load_u64(head + 8) == STREAM_MAGIC;
}

/* Writes devices and FIFOs in place, and regular files through a temporary one beside them. */
static int open_file(struct output *o, const char *path)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        o->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
        return o->fd < 0 ? GPUPROF_IO : 0;
    }
    if (is_recording(path))
        return GPUPROF_USAGE;
    char *real = realpath(path, NULL); /* keeps a symbolic link */
    int error = new_file_open(&o->file, real ? real : path, 0666);
    free(real);
    o->fd = o->file.fd;
    return error;
}

/* A stream write function, which returns 0 for an error. */
static ssize_t take_printed(void *context, const char *data, size_t length)
{
    struct output *o = context;
    output_write(o, data, length);
    return o->error ? 0 : (ssize_t)length;
}

static void output_init(struct output *o)
{
    *o = (struct output){.fd = -1, .file.fd = -1};
    o->buffer = memory_from(malloc(OUTPUT_BUFFER_BYTES));
    o->stream = memory_from(fopencookie(o, "w", (cookie_io_functions_t){.write = take_printed}));
}

int output_open(struct output *o, const char *path)
{
    bool is_named = path && strcmp(path, "-") != 0;
    int packing = path ? packing_of(path, strlen(path)) : -1;
    output_init(o);
    o->fd = STDOUT_FILENO;
    int error = is_named ? open_file(o, path) : 0, number = errno;
    if (error < 0)
        release(o);
    else if (packing >= 0)
        o->zstream = zstream_create(o->fd, packings[packing].form);
    errno = number;
    return error;
}

void output_drain(struct output *o)
{
    if (!o->error && o->room && o->used > *o->room)
        o->error = OUTPUT_BEYOND;
    if (!o->error && o->room)
        *o->room -= o->used;
    int error = o->error;
    if (!error && o->used)
        error = o->background ? hand_over(o, o->used) : output_write_out(o, o->buffer, o->used);
    o->error = error;
    o->flushed += o->used;
    o->used = 0;
}

char *output_room(struct output *o, size_t bytes)
{
    assert(bytes <= OUTPUT_BUFFER_BYTES && o->used <= OUTPUT_BUFFER_BYTES);
    if (bytes > OUTPUT_BUFFER_BYTES - o->used) {
        if (o->in_background) /* short output needs no second thread */
            start_background(o);
        output_drain(o);
    }
    return o->buffer + o->used;
}

void output_write(struct output *o, const char *data, size_t length)
{
    while (length) {
        size_t part = length < OUTPUT_BUFFER_BYTES / 2 ? length : OUTPUT_BUFFER_BYTES / 2;
        char *out = output_room(o, part);
        memcpy(out, data, part);
        output_advance(o, out + part);
        data += part;
        length -= part;
    }
}

void output_print(struct output *o, const char *format, ...)
{
    char *out = output_room(o, OUTPUT_PRINT_BYTES);
    va_list list;
    va_start(list, format);
    int length = vsnprintf(out, OUTPUT_PRINT_BYTES, format, list);
    va_end(list);
    output_advance(o, out + (length < OUTPUT_PRINT_BYTES ? length : OUTPUT_PRINT_BYTES - 1));
}

void output_open_member(struct output *o, int fd)
{
    output_init(o);
    o->fd = fd;
    o->member = true;
    o->zstream = zstream_create(fd, ZSTREAM_RAW);
}

void output_open_sink(struct output *o, output_sink_fn *sink, void *context)
{
    output_init(o);
    o->sink = sink;
    o->sink_context = context;
}

void output_divert(struct output *o, output_sink_fn *sink, void *context)
{
    assert(!o->background && !o->flushed);
    o->used = 0;
    o->in_background = false;
    o->sink = sink;
    o->sink_context = context;
}

int output_finish(struct output *o, int keep)
{
    if (o->stream)
        fclose(o->stream); /* its only errors are in o->error */
    o->stream = NULL;
    output_drain(o);
    int late = o->background ? end_background(o) : 0;
    o->error = o->error ?: late;
    late = o->zstream ? zstream_end(o->zstream, o->sums) : 0;
    o->error = o->error ?: late;
    int failed = 0;
    if (o->file.fd >= 0 && keep && !o->error)
        failed = new_file_place(&o->file, false);
    else if (o->file.fd >= 0)
        new_file_drop(&o->file);
    else if (o->fd >= 0 && o->fd != STDOUT_FILENO && !o->member)
        failed = close(o->fd);
    if (failed < 0 && !o->error)
        o->error = errno;
    int error = o->error;
    release(o);
    if (error == OUTPUT_BEYOND)
        return GPUPROF_LIMIT;
    errno = error;
    return error ? GPUPROF_IO : 0;
}
