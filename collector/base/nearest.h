/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the known word closest to a mistyped one ("did you mean"), and looks up words in lists. */
#ifndef GPUPROF_COLLECTOR_NEAREST_H
#define GPUPROF_COLLECTOR_NEAREST_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct nearest {
    const char *word; /* a view; not terminated */
    size_t length;
    const char *found; /* the closest word offered so far; NULL: none is close */
    size_t distance;   /* letters to change, swap, add or remove */
};

struct nearest nearest_to(const char *word, size_t length);
void nearest_offer(struct nearest *n, const char *candidate);

/* " (did you mean BEFOREfound?)" or "". Returns `text`. */
#define NEAREST_TEXT_BYTES 96
const char *nearest_text(const struct nearest *n, const char *before, char *text);

/* Returns true if the `length` bytes of `text` are `word`. */
static inline bool word_is(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && memcmp(text, word, length) == 0;
}

/* Returns the index of `name` in `list`, words with ',' or '|' between; UINT_MAX: none, or NULL. */
unsigned word_in(const char *list, const char *name);

#endif
