/* SPDX-License-Identifier: Apache-2.0 */
/* What all verbs that write a result do at its begin and end, and what all do with standard input,
 * output and error, which whoever starts us may have closed or filled up; what goes wrong is said.
 */
#ifndef GPUPROF_COLLECTOR_VERB_OUTPUT_H
#define GPUPROF_COLLECTOR_VERB_OUTPUT_H

#include "base/message.h"
#include "output/output.h"

/*
 * The most bytes of text that a run makes of recordings of so many `bytes`, in all its outputs: far
 * more than a recording has to say that a program made. It is for an output's `room`.
 */
#define OUTPUT_TEXT_FREE (256ull << 20) /* and 16 KiB for each byte */
uint64_t verb_output_room(uint64_t bytes);

/* Says on stderr why `path` (NULL or "-": standard output) cannot be written; an exit code. */
enum exit_code verb_output_failed(const char *path, int error);

/*
 * Is `path` (NULL or "-": standard output) the name of a file of that kind, "json", compressed or
 * not? With the kind "": does its name say nothing of what is in it?
 */
bool verb_output_is(const char *path, const char *kind);

/* A kind of file that a verb can write: the first member of what says how. */
struct file_format {
    const char *name;   /* as --format has it */
    const char *ending; /* of a file's name, behind its last point, without a .gz */
};

/* That of a list, ended by NULL, which has the name, or which a file's name means; NULL: none. */
const struct file_format *file_format_named(const struct file_format *const *list,
                                            const char *name);
const struct file_format *file_format_of_file(const struct file_format *const *list,
                                              const char *path);

/* All of them, with the endings of their files: "a (.x), b (.y)"; returns `text`. */
#define FILE_FORMAT_NAMES_BYTES 200
char *file_format_names(const struct file_format *const *list, char *text);

/* In the order of --format. Tables have no form of their own in HTML: a page is made of those for
 * JSON. */
enum report_format { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV, FORMAT_HTML, FORMAT_BY_NAME };

/* That of tables: as was asked for, or else as the file's name says (DIR/ is csv, which alone has a
 * file for each table); FORMAT_BY_NAME: there is none of that name. */
enum report_format verb_output_format(enum report_format asked, const char *path);

/* EXIT_OK, or another exit code: then it is not open. The second: of one of several files, in a
 * folder that the user has named. */
enum exit_code verb_output_open(struct output *out, const char *path, uint64_t *room);
enum exit_code verb_output_open_one(struct output *out, const char *path, uint64_t *room);

/* Ends it: after an `error`, which the caller has said, nothing is kept. An exit code. */
enum exit_code verb_output_close(struct output *out, const char *path, int error);

/*
 * Puts something that cannot be written to in the place of each that is closed, or the next file
 * opened, perhaps a recording, would get its number and our words. 0, or GPUPROF_IO after one line.
 */
int standard_files_fill(void);

/* Writes out what stdout holds: EXIT_OK, or EXIT_ENVIRONMENT after one line that says why. */
enum exit_code standard_output_end(void);

#endif
