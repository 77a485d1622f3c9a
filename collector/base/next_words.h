/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns suggested commands into lines to paste. A line names gpuprof, DATA and PROGRAM; they become
 * the command as it was called, the recordings with the current selection's options, and the
 * recorded program with the options it was recorded with. Options that the line has itself stay. A
 * word stays as it is if its value is unknown, longer than NEXT_BYTES_MAX or has characters that a
 * terminal hides; PROGRAM also if it cannot be found.
 */
#ifndef GPUPROF_COLLECTOR_NEXT_WORDS_H
#define GPUPROF_COLLECTOR_NEXT_WORDS_H

#include "base/select_request.h"
#include "settings.h"

#define NEXT_BYTES_MAX 1024

/* The places of options: those of the selection (select_request.h), these, and the settings. */
enum {
    NEXT_STEP_BY = SELECT_OPTIONS,
    NEXT_STEP_RANGE,
    NEXT_CLOCK,
    NEXT_SETTINGS,
    NEXT_OPTIONS = NEXT_SETTINGS + SETTING_COUNT
};

struct next_words {
    const char *command;         /* shell words; NULL: unknown, also below */
    char *data;                  /* owned */
    char *program;               /* owned */
    char *options[NEXT_OPTIONS]; /* owned: "--step=3"; NULL: not given */
};

/* `paths` are the recordings; `arguments` are separated by `separator` (empty or option-like first:
 * unknown). `command` must outlive `w`. Without memory, everything counts as unknown. */
void next_words_init(struct next_words *w, const char *command, char *const *paths, int path_count);

/* Adds an option of the recordings, or a setting that the program was recorded with; NULL: not
 * given. */
void next_words_set_option(struct next_words *w, unsigned place, const char *value);

/* Adds the program, then its arguments, one by one. Returns false if the command is unknown. */
bool next_words_add_argument(struct next_words *w, const char *word);
void next_words_set_program(struct next_words *w, const char *arguments, char separator);
void next_words_release(struct next_words *w);

/* Returns `line` with all known words, in new memory; NULL: no memory. `w` may be NULL. */
char *next_line(const struct next_words *w, const char *line);

#endif
