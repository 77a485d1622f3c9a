/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The destination of a verb's result: a file that appears under its name only when complete, or
 * standard output; compressed if the name ends in .gz or .zst. Text is built in a large buffer.
 * After the first error, which output_finish reports, writes do nothing. A small hostile file can
 * demand a long name millions of times, so the total text of all outputs of a run is bounded
 * (`room`).
 */
#ifndef GPUPROF_COLLECTOR_OUTPUT_H
#define GPUPROF_COLLECTOR_OUTPUT_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/message.h"
#include "output/new_file.h"

/* Only this module uses ISA-L: gzip is eight times as fast as zlib's, and a seventh larger. */

/* Compresses a block in zlib's format. Returns its bytes, or 0 if they exceed `room`. */
size_t zstream_pack(const uint8_t *data, size_t length, uint8_t *out, size_t room);

struct zstream_sums {
    uint32_t crc; /* of an archive's member: CRC-32 before compression */
    uint64_t bytes;
    uint64_t compressed;
};

#define OUTPUT_BUFFER_BYTES (1u << 20)
#define OUTPUT_BEYOND       (-1) /* in `error`: the text exceeds the bound */

/* Takes text. Returns 0, or an errno that ends the calls. */
typedef int output_sink_fn(void *context, const char *data, size_t length);

struct background;
struct zstream;

struct output {
    char *buffer; /* owned */
    size_t used;
    uint64_t flushed; /* bytes of text before those in the buffer */
    int fd;
    struct zstream *zstream; /* NULL: not compressed */
    bool in_background; /* set by the caller: a thread compresses and writes, if possible, while the
                         * next text is made in a second buffer; the file is the same */
    struct background *background; /* NULL: none (yet) */
    output_sink_fn *sink;          /* NULL: writes to a file */
    void *sink_context;
    bool member;          /* writes to the caller's file, which stays open */
    struct new_file file; /* not open: written in place */
    int error;            /* first errno, or OUTPUT_BEYOND */
    uint64_t *room; /* a view: bytes of text still allowed here and in other outputs with the same
                     * pointer; NULL: no limit */
    FILE *stream;   /* for fprintf: flushed in output_finish; ferror() reports errors */
    struct zstream_sums *sums; /* a view, for a member's; NULL: not wanted */
};

/* NULL or "-": standard output. Returns 0, GPUPROF_IO (errno), or GPUPROF_USAGE if `path` is a
 * recording, which it never overwrites. */
int output_open(struct output *o, const char *path);

/* Opens a member of an archive: deflate without a header into the open file `fd`, which the caller
 * closes; output_finish sets *o->sums. */
void output_open_member(struct output *o, int fd);

/* Returns the bytes of text so far. */
static inline uint64_t output_bytes(const struct output *o)
{
    return o->flushed + o->used;
}

/* Returns the length of a name without the ending of a compressed file. */
size_t output_plain_length(const char *name, size_t length);

/* Sends text to `sink`, at the latest at each output_drain. */
void output_open_sink(struct output *o, output_sink_fn *sink, void *context);
void output_drain(struct output *o);

/* For a forked process with its parent's output, into which nothing is flushed yet. From now on,
 * text goes to `sink`. */
void output_divert(struct output *o, output_sink_fn *sink, void *context);

/* Returns `bytes` (at most OUTPUT_BUFFER_BYTES) of buffer; then call output_advance. */
char *output_room(struct output *o, size_t bytes);

static inline void output_advance(struct output *o, const char *end)
{
    assert(end >= o->buffer + o->used && end <= o->buffer + OUTPUT_BUFFER_BYTES);
    o->used = (size_t)(end - o->buffer);
}

void output_write(struct output *o, const char *data, size_t length);

/* Writes like printf, at most OUTPUT_PRINT_BYTES - 1 bytes. */
#define OUTPUT_PRINT_BYTES 1024
__attribute__((format(printf, 2, 3))) void output_print(struct output *o, const char *format, ...);

/*
 * Writes the rest; puts the file in place if `keep`, else, and after any error, removes it.
 * Releases everything. Returns 0, GPUPROF_IO (errno), or GPUPROF_LIMIT if the text exceeded
 * `room`.
 */
int output_finish(struct output *o, int keep);

/* What all verbs share when they begin and end an output, and the care of standard input, output
 * and error, which a caller may have closed. Failures are reported. */

/* Returns the most text that a run may write, in all outputs, from recordings of `bytes` bytes: far
 * more than real ones need. It is for an output's `room`. */
#define OUTPUT_TEXT_FREE (256ull << 20) /* plus 16 KiB per byte */
uint64_t verb_output_room(uint64_t bytes);

/* Reports why `path` (NULL or "-": standard output) cannot be written; returns an exit code. */
enum exit_code verb_output_failed(const char *path, int error);

/* Returns true if the name `path` (NULL or "-": standard output) has that ending, such as "json",
 * compressed or not. Kind "": the name does not show the kind. */
bool verb_output_is(const char *path, const char *kind);

/* A kind of file that a verb can write: the first member of the structs that describe how. */
struct file_format {
    const char *name;   /* for --format */
    const char *ending; /* of a file's name, after the last point, without .gz */
};

/* Returns the format that was `asked` for by name, or else (NULL) of the file; NULL: none. NULL
 * ends the list. */
const struct file_format *file_format_of(const struct file_format *const *list, const char *asked,
                                         const char *path);

/* The same, with an error message if there is none. */
const struct file_format *file_format_find(const char *verb, const struct file_format *const *list,
                                           const char *asked, const char *path);

/* Writes all names with their endings to `text`: "a (.x), b (.y)". Returns `text`. */
#define FILE_FORMAT_NAMES_BYTES 200
char *file_format_names(const struct file_format *const *list, char *text);

/* In the order of --format. HTML pages are made from the tables' JSON. */
enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_HTML, FORMAT_BY_NAME };

/* Returns the format of tables: as requested, or by the file's name (DIR/ is csv, which has a file
 * per table). FORMAT_BY_NAME: unknown name. */
enum report_format verb_output_format(enum report_format asked, const char *path);

/* Creates the missing folders of the file `path`. */
enum exit_code verb_output_folders(const char *path);

/* Returns EXIT_OK, or an exit code if the output is not open. */
enum exit_code verb_output_open(struct output *out, const char *path, uint64_t *room);

/* Ends the output; removes it after an `error`, which the caller reported. Returns an exit code. */
enum exit_code verb_output_close(struct output *out, const char *path, int error);

/* Opens /dev/null for each closed standard file; otherwise the next file opened, perhaps a
 * recording, would receive our messages. Returns 0, or GPUPROF_IO after one line. */
int standard_files_fill(void);

/* Flushes stdout. Returns EXIT_OK, or EXIT_ENVIRONMENT after one line with the reason. */
enum exit_code standard_output_end(void);

#endif
