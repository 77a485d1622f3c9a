/* SPDX-License-Identifier: Apache-2.0 */
/* A screen of labelled lines: the first screen of a report, the summary of a run, and what `gpuprof
 * memory` shows first. */
#ifndef GPUPROF_COLLECTOR_SCREEN_H
#define GPUPROF_COLLECTOR_SCREEN_H

#include <stdbool.h>
#include <stddef.h>
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

/* The same for a name in new memory, which it frees. */
void screen_line_freed(struct screen *s, const char *label, char *name, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Prints a text in lines as wide as the screen or page. Does not cut words. */
void screen_wrapped(struct screen *s, const char *label, const char *text);

/* Prints one line; on a narrow terminal up to three, to show more of the text. */
void screen_long(struct screen *s, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The width of UTF-8 texts on a terminal, and how to cut those that do not fit. */

#define TEXT_WIDTH_MIN 8 /* least width for text_cut */

/* Returns the columns of `length` bytes of `text`: two for each wide East Asian letter and most
 * pictures, none for combining marks. */
size_t text_width(const char *text, size_t length);

/* Returns `length` bytes of `text`; if wider than `width` (at least TEXT_WIDTH_MIN), begin and end
 * with "..." between. New memory. */
char *text_cut(const char *text, size_t length, size_t width);

/* The same for a possible stack ("1 MiB: call | innermost | ... | outermost"): drops the outermost
 * frames first, then the call, and only then cuts the innermost frame. For a C++ function outside a
 * stack, drops namespaces and arguments first, then the call after it. */
char *text_cut_stack(const char *text, size_t length, size_t width);

/* Returns the bytes of the words that fit into the first `room` bytes of `text`; all if it is
 * shorter, or no word fits. */
size_t text_wrap(const char *text, size_t room);

/* Returns the width of the terminal `fd`, from it or from COLUMNS; 0: not a terminal, or
 * unknown. */
uint32_t terminal_width(int fd);

/* Returns true if `fd` is a terminal and NO_COLOR and TERM allow colour. */
bool terminal_has_colour(int fd);

/* Escape sequences: bold, bold red, and the end of both. */
#define COLOUR_STRONG "\033[1m"
#define COLOUR_ALARM  "\033[1;31m"
#define COLOUR_END    "\033[0m"

#endif
