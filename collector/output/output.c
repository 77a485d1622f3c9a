/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
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
#include "bytes.h"
#include "error.h"
#include "stream.h"

/* A thread that processes full buffers in order while the next one is filled. */
struct background {
    pthread_t thread;
    pthread_mutex_t lock; /* of the members below */
    pthread_cond_t changed;
    char *buffers[OUTPUT_BUFFERS]; /* a ring; owned, except the one being filled */
    size_t lengths[OUTPUT_BUFFERS];
    uint64_t filled, used; /* buffers so far */
    bool ends;
    int error;
    output_sink_fn *use;
    void *context;
};

static void *output_work(void *context)
{
    struct background *b = context;
    pthread_mutex_lock(&b->lock);
    for (;;) {
        while (b->used == b->filled && !b->ends)
            pthread_cond_wait(&b->changed, &b->lock);
        if (b->used == b->filled)
            break;
        unsigned next = b->used % OUTPUT_BUFFERS;
        int error = b->error;
        pthread_mutex_unlock(&b->lock);
        if (!error)
            error = b->use(b->context, b->buffers[next], b->lengths[next]);
        pthread_mutex_lock(&b->lock);
        b->error = error;
        b->used++;
        pthread_cond_signal(&b->changed);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

static void release_background(struct background *b)
{
    for (unsigned i = 0; i < OUTPUT_BUFFERS; i++)
        if (i != b->filled % OUTPUT_BUFFERS)
            free(b->buffers[i]);
    pthread_cond_destroy(&b->changed);
    pthread_mutex_destroy(&b->lock);
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
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->changed, NULL);
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
    pthread_mutex_lock(&b->lock);
    b->lengths[b->filled++ % OUTPUT_BUFFERS] = length;
    pthread_cond_signal(&b->changed);
    while (b->filled - b->used == OUTPUT_BUFFERS)
        pthread_cond_wait(&b->changed, &b->lock);
    *error = b->error;
    pthread_mutex_unlock(&b->lock);
    return b->buffers[b->filled % OUTPUT_BUFFERS];
}

/* Waits until all is done. Returns 0 or the first errno. */
static int end_background(struct background *b)
{
    pthread_mutex_lock(&b->lock);
    b->ends = true;
    pthread_cond_signal(&b->changed);
    pthread_mutex_unlock(&b->lock);
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
