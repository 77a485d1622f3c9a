/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is proposed to be run next, as it can be pasted: a line says gpuprof, DATA and PROGRAM, and
 * gets how gpuprof was called, the recordings as they were named, behind the options of the piece
 * that was looked at, and the program with its arguments as they were recorded, behind the options
 * that it was recorded with, but for those that the line says itself. What is not known stays as
 * the line has it, and so does a program that no shell would find here, and what holds something
 * that a terminal does not show as it is, or is longer than NEXT_BYTES_MAX.
 */
#ifndef GPUPROF_COLLECTOR_NEXT_WORDS_H
#define GPUPROF_COLLECTOR_NEXT_WORDS_H

#include "base/select_wish.h"
#include "settings.h"

/* A text as a word of a command line that somebody is to paste into a shell. */

/* As a shell wants it that is to read `text` back, in new memory; NULL: no memory. */
char *shell_word(const char *text);

#define NEXT_BYTES_MAX 1024
#define NEXT_OPTIONS   (SELECT_OPTIONS + 3) /* behind a piece's what a step is, and a clock */
struct next_words {
    const char *command;          /* words for a shell; NULL: not known, as the others */
    char *data;                   /* owned, likewise */
    char *program;                /* owned, likewise */
    char *options[SETTING_COUNT]; /* owned: "--pytorch=names"; NULL: not said */
    char *piece[NEXT_OPTIONS];    /* owned: "--step=3", by place in select_wish.h; NULL: not said */
};

/* `paths` are named behind options, `arguments` have `separator` between each other (NULL: they are
 * not known; neither are those whose first is empty, or would be read as an option). `command` must
 * stay. Without memory it is as if nothing were known. */
void next_words_init(struct next_words *w, const char *command, char *const *paths, int path_count);
/* With what --step-by, --step-range and --clock say; NULL: nothing. */
void next_words_set_piece(struct next_words *w, const struct select_wish *wish, const char *step_by,
                          const char *step_range, const char *clock);
void next_words_set_program(struct next_words *w, const char *arguments, char separator);
/* Of a setting that the recording says it had. */
void next_words_set_option(struct next_words *w, enum setting_index setting, const char *value);
void next_words_release(struct next_words *w);

/* `line` with all that is known, in new memory; NULL: no memory. `w` may be NULL. */
char *next_line(const struct next_words *w, const char *line);

#endif
