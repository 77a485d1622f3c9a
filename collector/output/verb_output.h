/* SPDX-License-Identifier: Apache-2.0 */
/* What all verbs share when they begin and end an output, and the care of standard input, output
 * and error, which a caller may have closed. Failures are reported. */
#ifndef GPUPROF_COLLECTOR_VERB_OUTPUT_H
#define GPUPROF_COLLECTOR_VERB_OUTPUT_H

#include "base/message.h"
#include "output/output.h"

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

/* Returns the format with that name or for that file name; NULL: none. NULL ends the list. */
const struct file_format *file_format_named(const struct file_format *const *list,
                                            const char *name);
const struct file_format *file_format_of_file(const struct file_format *const *list,
                                              const char *path);

/* Writes all names with their endings to `text`: "a (.x), b (.y)". Returns `text`. */
#define FILE_FORMAT_NAMES_BYTES 200
char *file_format_names(const struct file_format *const *list, char *text);

/* In the order of --format. HTML pages are made from the tables' JSON. */
enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_HTML, FORMAT_BY_NAME };

/* Returns the format of tables: as requested, or by the file's name (DIR/ is csv, which has a file
 * per table). FORMAT_BY_NAME: unknown name. */
enum report_format verb_output_format(enum report_format asked, const char *path);

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
