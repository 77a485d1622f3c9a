/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <isa-l.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/json_text.h"
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

/* Compresses into the open file `fd`, which the caller closes. Returns NULL without memory. */
static struct zstream *zstream_create(int fd, enum zstream_form form)
{
    struct zstream *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->fd = fd;
    z->form = form;
    isal_deflate_init(&z->isal);
    z->isal.level = LEVEL;
    z->isal.level_buf = z->level_buffer;
    z->isal.level_buf_size = sizeof z->level_buffer;
    z->isal.gzip_flag = form == ZSTREAM_GZIP ? IGZIP_GZIP : IGZIP_DEFLATE;
    return z;
}

static int zstream_put(struct zstream *z, size_t length)
{
    z->sums.compressed += length;
    return file_write_next(z->fd, z->buffer, length);
}

static int feed_zstd(struct zstream *z, const char *data, size_t length, bool ends)
{
    int more = 1, error = 0;
    while (more > 0 && !error) {
        uint8_t *end = z->buffer;
        more = zstandard_feed(&z->zstandard, &data, &length, ends, &end, z->buffer + ZSTREAM_BYTES);
        error = more < 0 ? ENOMEM : zstream_put(z, (size_t)(end - z->buffer));
    }
    return error;
}

static int feed_deflate(struct zstream *z, const char *data, size_t length, bool ends)
{
    int error = 0;
    z->isal.next_in = (uint8_t *)(uintptr_t)data;
    z->isal.avail_in = (uint32_t)length;
    z->isal.end_of_stream = ends;
    do {
        z->isal.next_out = z->buffer;
        z->isal.avail_out = ZSTREAM_BYTES;
        if (isal_deflate(&z->isal) != COMP_OK)
            return EIO;
        error = zstream_put(z, ZSTREAM_BYTES - z->isal.avail_out);
    } while (!error && (z->isal.avail_in || !z->isal.avail_out));
    return error;
}

static int feed(struct zstream *z, const char *data, size_t length, bool ends)
{
    return z->form == ZSTREAM_ZSTD ? feed_zstd(z, data, length, ends)
                                   : feed_deflate(z, data, length, ends);
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

/* A thread that processes full buffers in order while the next one is filled. */
struct background {
    pthread_t thread;
    sem_t filled, free;            /* buffers to process, and to fill */
    char *buffers[OUTPUT_BUFFERS]; /* a ring; owned, except the one being filled */
    size_t lengths[OUTPUT_BUFFERS];
    unsigned at; /* the buffer being filled */
    atomic_int error;
    output_sink_fn *use;
    void *context;
};

static void wait_for(sem_t *semaphore)
{
    while (sem_wait(semaphore) < 0) /* a signal came */
        ;
}

/* An empty buffer ends it. */
static void *output_work(void *context)
{
    struct background *b = context;
    for (unsigned at = 0;; at = (at + 1) % OUTPUT_BUFFERS) {
        wait_for(&b->filled);
        if (!b->lengths[at])
            return NULL;
        if (!b->error)
            b->error = b->use(b->context, b->buffers[at], b->lengths[at]);
        sem_post(&b->free);
    }
}

static void release_background(struct background *b)
{
    for (unsigned i = 0; i < OUTPUT_BUFFERS; i++)
        if (i != b->at)
            free(b->buffers[i]);
    sem_destroy(&b->filled);
    sem_destroy(&b->free);
    free(b);
}

/* `buffer` becomes the first one. Returns NULL without memory or a thread. */
static struct background *start_background(char *buffer, size_t bytes, output_sink_fn *use,
                                           void *context)
{
    struct background *b = calloc(1, sizeof *b);
    bool is_whole = b;
    if (!b)
        return NULL;
    b->use = use;
    b->context = context;
    b->buffers[0] = buffer;
    sem_init(&b->filled, 0, 0);
    sem_init(&b->free, 0, OUTPUT_BUFFERS - 1);
    for (unsigned i = 1; i < OUTPUT_BUFFERS; i++)
        is_whole &= (b->buffers[i] = malloc(bytes)) != NULL;
    if (is_whole && parallel_start(&b->thread, output_work, b))
        return b;
    release_background(b);
    return NULL;
}

/* Hands over the filled buffer and returns the next. Sets *error to an earlier errno. */
static char *exchange(struct background *b, size_t length, int *error)
{
    b->lengths[b->at] = length;
    sem_post(&b->filled);
    wait_for(&b->free);
    *error = b->error;
    b->at = (b->at + 1) % OUTPUT_BUFFERS;
    return b->buffers[b->at];
}

/* Waits until all is done. Returns 0 or the first errno. */
static int end_background(struct background *b)
{
    b->lengths[b->at] = 0;
    sem_post(&b->filled);
    pthread_join(b->thread, NULL);
    int error = b->error;
    release_background(b);
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

/* Removes a file that was not put in place. */
static int output_close_file(struct output *o)
{
    if (o->file.fd >= 0)
        new_file_drop(&o->file);
    else if (o->fd >= 0 && o->fd != STDOUT_FILENO && !o->member)
        return close(o->fd);
    return 0;
}

/* A stream write function, which returns 0 for an error. */
static ssize_t take_printed(void *context, const char *data, size_t length)
{
    struct output *o = context;
    output_write(o, data, length);
    return o->error ? 0 : (ssize_t)length;
}

static int make_buffers(struct output *o)
{
    o->buffer = malloc(OUTPUT_BUFFER_BYTES);
    o->stream = fopencookie(o, "w", (cookie_io_functions_t){.write = take_printed});
    return o->buffer && o->stream ? 0 : GPUPROF_NO_MEMORY;
}

int output_open(struct output *o, const char *path)
{
    *o = (struct output){.fd = -1, .file.fd = -1};
    int error = make_buffers(o);
    if (error == 0 && (!path || strcmp(path, "-") == 0))
        o->fd = STDOUT_FILENO;
    else if (error == 0)
        error = open_file(o, path);
    int packing = path ? packing_of(path, strlen(path)) : -1;
    if (error == 0 && packing >= 0) {
        o->zstream = zstream_create(o->fd, packings[packing].form);
        if (!o->zstream) {
            output_close_file(o);
            error = GPUPROF_NO_MEMORY;
        }
    }
    if (error < 0) {
        int saved = errno;
        release(o);
        errno = saved;
    }
    return error;
}

/* Runs on either thread. */
static int output_write_out(void *context, const char *data, size_t length)
{
    const struct output *o = context;
    if (o->sink)
        return o->sink(o->sink_context, data, length);
    return o->zstream ? zstream_write(o->zstream, data, length)
                      : file_write_next(o->fd, data, length);
}

/* Short output needs no second thread. */
static void output_flush(struct output *o, bool is_last)
{
    if (!o->error && o->room && o->used > *o->room)
        o->error = OUTPUT_BEYOND;
    if (!o->error && o->room)
        *o->room -= o->used;
    if (o->in_background && !o->background && !is_last) {
        o->background = start_background(o->buffer, OUTPUT_BUFFER_BYTES, output_write_out, o);
        o->in_background = o->background != NULL;
    }
    int error = o->error;
    if (!error && o->used && o->background)
        o->buffer = exchange(o->background, o->used, &error);
    else if (!error && o->used)
        error = output_write_out(o, o->buffer, o->used);
    o->error = error;
    o->flushed += o->used;
    o->used = 0;
}

void output_drain(struct output *o)
{
    output_flush(o, true);
}

char *output_room(struct output *o, size_t bytes)
{
    assert(bytes <= OUTPUT_BUFFER_BYTES && o->used <= OUTPUT_BUFFER_BYTES);
    if (bytes > OUTPUT_BUFFER_BYTES - o->used)
        output_flush(o, false);
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

void output_json(struct output *o, const char *before, const char *text)
{
    char *clean = json_clean(text, strlen(text));
    char *string = clean ? json_string(clean, strlen(clean)) : NULL;
    output_write(o, before, strlen(before));
    if (string)
        output_write(o, string, strlen(string));
    else if (!o->error)
        o->error = ENOMEM;
    free(clean);
    free(string);
}

int output_open_member(struct output *o, int fd, struct zstream_sums *sums)
{
    *o = (struct output){.fd = fd, .member = true, .file.fd = -1, .sums = sums};
    o->zstream = zstream_create(fd, ZSTREAM_RAW);
    if (make_buffers(o) == 0 && o->zstream)
        return 0;
    if (o->zstream)
        zstream_end(o->zstream, NULL);
    release(o);
    return GPUPROF_NO_MEMORY;
}

int output_open_sink(struct output *o, output_sink_fn *sink, void *context)
{
    *o = (struct output){
        .fd = -1, .member = true, .file.fd = -1, .sink = sink, .sink_context = context};
    int error = make_buffers(o);
    if (error < 0)
        release(o);
    return error;
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
    output_flush(o, true);
    int late = o->background ? end_background(o->background) : 0;
    if (!o->error)
        o->error = late;
    if (o->zstream) {
        int error = zstream_end(o->zstream, o->sums);
        if (!o->error)
            o->error = error;
    }
    bool is_whole = o->file.fd >= 0 && keep && !o->error;
    int failed = is_whole ? new_file_place(&o->file, false) : output_close_file(o);
    if (failed < 0 && !o->error)
        o->error = errno;
    int error = o->error;
    release(o);
    if (error == OUTPUT_BEYOND)
        return GPUPROF_LIMIT;
    errno = error;
    return error ? GPUPROF_IO : 0;
}
