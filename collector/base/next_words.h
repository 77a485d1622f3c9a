/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns suggested commands into lines to paste. A line names gpuprof, DATA and PROGRAM; they become
 * the command as it was called, the recordings with the current selection's options, and the
 * recorded program with the options it was recorded with. Options that the line has itself stay. A
 * word stays as it is if its value is unknown, longer than NEXT_BYTES_MAX or has characters that a
 * terminal hides.
 */
#ifndef GPUPROF_COLLECTOR_NEXT_WORDS_H
#define GPUPROF_COLLECTOR_NEXT_WORDS_H

#include "base/select_request.h"
#include "settings.h"

#define NEXT_BYTES_MAX 1024

#define NEXT_OPTIONS (SELECT_OPTIONS + 3 + SETTING_COUNT)

struct next_option {
    const char *name;
    char *word;      /* owned: "--step=3" */
    bool is_setting; /* of PROGRAM; others are of DATA */
};

struct next_words {
    const char *command; /* shell words; NULL: unknown, also below */
    char *data;          /* owned */
    char *program;       /* owned */
    struct next_option options[NEXT_OPTIONS];
    unsigned option_count;
};

/* `paths` are the recordings; `arguments` are separated by `separator` (empty or option-like first:
 * unknown). `command` must outlive `w`. */
void next_words_init(struct next_words *w, const char *command, char *const *paths, int path_count);

/* Adds an option of the recordings, or a setting that the program was recorded with; each once.
 * NULL: it was not given. `name` must outlive `w`. */
void next_words_add_option(struct next_words *w, const char *name, const char *value,
                           bool is_setting);

/* Adds the program, then its arguments, one by one. Returns false if the command is unknown. */
bool next_words_add_argument(struct next_words *w, const char *word);
void next_words_set_program(struct next_words *w, const char *arguments, char separator);
void next_words_release(struct next_words *w);

/* Returns `line` with all known words, in new memory. `w` may be NULL. */
char *next_line(const struct next_words *w, const char *line);

#endif
