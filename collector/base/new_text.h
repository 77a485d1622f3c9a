/* SPDX-License-Identifier: Apache-2.0 */
/* Texts in new memory: by a format, or printed piece by piece. */
#ifndef GPUPROF_COLLECTOR_NEW_TEXT_H
#define GPUPROF_COLLECTOR_NEW_TEXT_H

#include <stddef.h>
#include <stdio.h>

/* NULL: no memory. */
char *text_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct new_text {
    char *text;
    size_t length; /* once it is complete */
};

/* What is printed to the stream, until new_text_end. NULL: no memory. */
FILE *new_text_begin(struct new_text *t);

/* The text, which is the caller's. NULL: no memory, as where `out` is NULL. */
char *new_text_end(struct new_text *t, FILE *out);

#endif
