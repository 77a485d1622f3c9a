/* SPDX-License-Identifier: Apache-2.0 */
/* Texts, valid UTF-8, on a terminal: how wide they are, and what is left of those that do not fit.
 */
#ifndef GPUPROF_COLLECTOR_TEXT_WIDTH_H
#define GPUPROF_COLLECTOR_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_WIDTH_MIN 8 /* of what text_cut leaves */

/* The columns that `length` bytes of `text` take: two for each wide letter of East Asia and most
 * pictures, none for marks on the letter before. */
size_t text_width(const char *text, size_t length);

/*
 * `length` bytes of `text`, or, if they are wider than `width` (at least TEXT_WIDTH_MIN), their
 * beginning and end with "..." between. New memory; NULL: there is none.
 */
char *text_cut(const char *text, size_t length, size_t width);

/* The same of what may be a stack ("1 MiB: call | innermost | ... | outermost"): the outermost
 * frames go first, then the call, and only then is the innermost frame cut. Of a function of C++
 * that is none, its namespaces and arguments go first, then what called it. */
char *text_cut_stack(const char *text, size_t length, size_t width);

/* The width of the terminal that `fd` is, from it or else from COLUMNS; 0: it is none, or says
 * nothing. */
uint32_t terminal_width(int fd);

/* Is `fd` a terminal that may be coloured, by NO_COLOR and TERM? */
bool terminal_has_colour(int fd);

/* What makes text bold, or bold and red, and what ends either. */
#define COLOUR_STRONG "\033[1m"
#define COLOUR_ALARM  "\033[1;31m"
#define COLOUR_END    "\033[0m"

#endif
