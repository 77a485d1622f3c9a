/* SPDX-License-Identifier: Apache-2.0 */
/* A screen of lines, each with a label in front: the first screen of a report, the summary of a
 * run, and what `gpuprof memory` shows first. */
#ifndef GPUPROF_COLLECTOR_SCREEN_H
#define GPUPROF_COLLECTOR_SCREEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define SCREEN_LABEL_WIDTH 12

struct screen {
    FILE *out;
    uint32_t width; /* of the terminal, in columns; 0: any */
    bool is_short;  /* the summary of a run: nothing takes more than a line */
    bool has_colour;
    unsigned lines; /* printed */
};

/* Prints a line as it is, with its label in colour if there is to be any. */
void screen_print(struct screen *s, const char *text);

/* A line, at whose end a `name` may stand (NULL: none), of which less is shown if need be. */
void screen_line(struct screen *s, const char *label, const char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* The same of a name in new memory, which it frees; NULL, no memory: "?". */
void screen_line_freed(struct screen *s, const char *label, char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* A text of several lines, of `room` columns behind the label each; 0: as many as the screen, or a
 * page, has. Words are not cut. */
void screen_wrapped(struct screen *s, const char *label, const char *text, size_t room);

/* One line; on a terminal that is too narrow up to three, in which more of the text has room. */
void screen_long(struct screen *s, const char *label, const char *text);

#endif
