/* SPDX-License-Identifier: Apache-2.0 */
/* Words that somebody typed: which one may have been meant by one that is unknown; lists of them.
 */
#ifndef GPUPROF_COLLECTOR_NEAREST_H
#define GPUPROF_COLLECTOR_NEAREST_H

#include <stddef.h>

struct nearest {
    const char *word; /* a view; not terminated */
    size_t length;
    const char *found; /* the nearest of those offered; NULL: none is near */
    size_t distance;   /* fewest letters to change, swap, add or leave out */
};

struct nearest nearest_to(const char *word, size_t length);
void nearest_offer(struct nearest *n, const char *candidate);

/* " (did you mean BEFOREfound?)" or "". Returns `text`. */
#define NEAREST_TEXT_BYTES 96
const char *nearest_text(const struct nearest *n, const char *before, char *text);

/* The place of `name` among the words of `list`, with commas between, and spaces perhaps. UINT_MAX:
 * it is none of them, or either is NULL. */
unsigned word_in(const char *list, const char *name);

#endif
