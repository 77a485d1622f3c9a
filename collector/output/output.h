/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a verb's result goes: a file that appears under its name only when it is whole, or standard
 * output; compressed if the name ends in .gz or .zst. Text is made in place in a large buffer. The
 * first error sticks and is reported by output_finish; until then writing goes nowhere. A hostile
 * file can say in a few bytes that a long name is to be written millions of times: what the outputs
 * of a run may have of text in all is bounded (`room`).
 */
#ifndef GPUPROF_COLLECTOR_OUTPUT_H
#define GPUPROF_COLLECTOR_OUTPUT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "output/new_file.h"

/*
 * Compressing what is written into a file: as gzip, as an archive's member, or as zstd. The one
 * place that knows ISA-L, which makes gzip eight times as fast as zlib does, and a seventh larger.
 */
enum zstream_form { ZSTREAM_GZIP, ZSTREAM_RAW, ZSTREAM_ZSTD };

struct zstream;

/* Compresses into the open file `fd`, which stays the caller's. NULL: no memory. */
struct zstream *zstream_create(int fd, enum zstream_form form);

/* 0, or the errno of the write that failed. */
int zstream_write(struct zstream *z, const char *data, size_t length);

/* Compresses a piece as zlib's format has it. Its bytes, or 0: they are more than `room`. */
size_t zstream_pack(const uint8_t *data, size_t length, uint8_t *out, size_t room);

struct zstream_sums {
    uint32_t crc; /* of a member: CRC-32 of what was written, before compression */
    uint64_t bytes;
    uint64_t compressed;
};

/* Ends the stream and frees it; `sums` may be NULL. 0 or an errno. */
int zstream_end(struct zstream *z, struct zstream_sums *sums);

#define OUTPUT_BUFFER_BYTES (1u << 20)
#define OUTPUT_BUFFERS      4    /* of an output in the background */
#define OUTPUT_BEYOND       (-1) /* in `error`: more text than the bound */

/* Takes text on the way. 0 or an errno: then it is not called again. */
typedef int output_sink_fn(void *context, const char *data, size_t length);

struct background;

struct output {
    char *buffer; /* owned */
    size_t used;
    uint64_t flushed; /* bytes of text before these */
    int fd;
    struct zstream *zstream; /* NULL: not compressed */
    bool stays_plain;        /* the caller's: what is in it is not to be compressed */
    bool is_one_of_several;  /* likewise: files in a folder that the user has named */
    bool
        in_background; /* the caller's: a thread compresses and writes, if one can be had, while the
                          next text is made, with OUTPUT_BUFFERS buffers; the file is the same */
    struct background *background; /* NULL: not, or not yet */
    output_sink_fn *sink;          /* NULL: it goes to a file */
    void *sink_context;
    bool member;          /* into a file of the caller's, which stays open */
    struct new_file file; /* not open: written in place */
    int error;            /* errno of the first failure, or OUTPUT_BEYOND */
    uint64_t *room; /* a view: bytes of text that may still be written, here and wherever else it is
                       the bound; NULL: any */
    FILE *stream;   /* for those who print: what is printed there is written here, at the latest by
                       output_finish; ferror() tells that there was an error */
    struct zstream_sums *sums; /* of a member, filled by output_finish */
};

/*
 * NULL or "-": standard output. 0, GPUPROF_IO (errno), GPUPROF_NO_MEMORY, or GPUPROF_USAGE if
 * `path` is a recording: that is not overwritten.
 */
int output_open(struct output *o, const char *path);

/*
 * Compressed without a head into the open file `fd`, which stays the caller's, for an archive;
 * output_finish fills *sums. 0 or GPUPROF_NO_MEMORY.
 */
int output_open_member(struct output *o, int fd, struct zstream_sums *sums);

/* Bytes of text so far. */
static inline uint64_t output_bytes(const struct output *o)
{
    return o->flushed + o->used;
}

/* The length of a name without what says that its file is compressed. */
size_t output_plain_length(const char *name, size_t length);

/* Text for `sink`, which gets it before output_finish, and in whole when output_drain says so. 0 or
 * GPUPROF_NO_MEMORY. */
int output_open_sink(struct output *o, output_sink_fn *sink, void *context);
void output_drain(struct output *o);

/* In a process that was forked, of an output that its parent goes on with, and in which nothing is
 * written yet but what is still in the buffer: what is written here from now on is made in `buffer`
 * of OUTPUT_BUFFER_BYTES, a view, and goes to `sink`, which may put another one in its place. */
void output_divert(struct output *o, char *buffer, output_sink_fn *sink, void *context);

/* At least `bytes` (at most OUTPUT_BUFFER_BYTES) of the buffer, to be followed by output_advance.
 */
char *output_room(struct output *o, size_t bytes);

static inline void output_advance(struct output *o, const char *end)
{
    assert(end >= o->buffer + o->used && end <= o->buffer + OUTPUT_BUFFER_BYTES);
    o->used = (size_t)(end - o->buffer);
}

void output_write(struct output *o, const char *data, size_t length);

/* Writes as printf does, at most OUTPUT_PRINT_BYTES - 1 bytes. */
#define OUTPUT_PRINT_BYTES 1024
__attribute__((format(printf, 2, 3))) void output_print(struct output *o, const char *format, ...);

/* Writes `before`, then the text as a JSON string, cleaned (json_clean). */
void output_json(struct output *o, const char *before, const char *text);

/*
 * Writes what is left; puts the file in its place if `keep`, else and after any error removes it.
 * Releases everything. 0, GPUPROF_IO (errno), or GPUPROF_LIMIT if there was no room for all.
 */
int output_finish(struct output *o, int keep);

#endif
