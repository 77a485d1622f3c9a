/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in new memory, from a format or printed to a stream. */
#ifndef GPUPROF_COLLECTOR_NEW_TEXT_H
#define GPUPROF_COLLECTOR_NEW_TEXT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

/* Return NULL without memory. */
char *text_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_vprintf(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

struct new_text {
    char *text;
    size_t length; /* valid after new_text_end */
};

/* Opens a stream that collects text until new_text_end. Returns NULL without memory. */
FILE *new_text_begin(struct new_text *t);

/* Closes the stream and returns the text, which the caller frees. NULL: no memory, or no `out`. */
char *new_text_end(struct new_text *t, FILE *out);

#endif
