/* SPDX-License-Identifier: Apache-2.0 */
/* The width of UTF-8 texts on a terminal, and how to cut those that do not fit. */
#ifndef GPUPROF_COLLECTOR_TEXT_WIDTH_H
#define GPUPROF_COLLECTOR_TEXT_WIDTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_WIDTH_MIN 8 /* least width for text_cut */

/* Returns the columns of `length` bytes of `text`: two for each wide East Asian letter and most
 * pictures, none for combining marks. */
size_t text_width(const char *text, size_t length);

/* Returns `length` bytes of `text`; if wider than `width` (at least TEXT_WIDTH_MIN), begin and end
 * with "..." between. New memory; NULL: no memory. */
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
