/* SPDX-License-Identifier: Apache-2.0 */
/* A screen of labelled lines: the first screen of a report, the summary of a run, and what `gpuprof
 * memory` shows first. */
#ifndef GPUPROF_COLLECTOR_SCREEN_H
#define GPUPROF_COLLECTOR_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SCREEN_LABEL_WIDTH 12

struct screen {
    FILE *out;
    uint32_t width; /* of the terminal, in columns; 0: no limit */
    bool is_short;  /* the summary of a run: one line per item */
    bool has_colour;
    unsigned lines; /* printed so far */
};

/* Prints a line unchanged, with its label in colour if wanted. */
void screen_print(struct screen *s, const char *text);

/* Prints a line that may end with a `name` (NULL: none), which is cut to fit. */
void screen_line(struct screen *s, const char *label, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same for a name in new memory, which it frees; NULL (no memory) prints "?". */
void screen_line_freed(struct screen *s, const char *label, char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints a text of several lines, each of `room` columns after the label; 0: the width of the
 * screen or page. Does not cut words. */
void screen_wrapped(struct screen *s, const char *label, const char *text, size_t room);

/* Prints one line; on a narrow terminal up to three, to show more of the text. */
void screen_long(struct screen *s, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
