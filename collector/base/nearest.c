/* SPDX-License-Identifier: Apache-2.0 */
#include "base/nearest.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#define NEAREST_BYTES_MAX 32 /* longer words are not compared */

struct nearest nearest_to(const char *word, size_t length)
{
    return (struct nearest){.word = word, .length = length, .distance = length / 4 + 2};
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Returns Levenshtein's distance, where swapping two neighbours is one change; keeps three rows. */
static size_t distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t rows[3][NEAREST_BYTES_MAX + 1];
    for (size_t j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= a_length; i++) {
        const size_t *before = rows[(i + 1) % 3], *last = rows[(i + 2) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= b_length; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
    }
    return rows[a_length % 3][b_length];
}

void nearest_offer(struct nearest *n, const char *candidate)
{
    size_t length = strlen(candidate);
    if (n->length < 2 || n->length > NEAREST_BYTES_MAX || length > NEAREST_BYTES_MAX)
        return;
    size_t changes = distance(n->word, n->length, candidate, length);
    if (n->length >= 4 && length > n->length && memcmp(n->word, candidate, n->length) == 0)
        changes = 1; /* the word was cut to fit */
    if (changes < n->distance && changes < n->length) {
        n->distance = changes;
        n->found = candidate;
    }
}

const char *nearest_text(const struct nearest *n, const char *before, char *text)
{
    text[0] = '\0';
    if (n->found)
        snprintf(text, NEAREST_TEXT_BYTES, " (did you mean %s%s?)", before, n->found);
    return text;
}

unsigned word_in(const char *list, const char *name)
{
    for (unsigned i = 0; name && list && *list; i++) {
        list += strspn(list, " ");
        size_t word = strcspn(list, ",|");
        if (word_is(list, word, name))
            return i;
        list += word + (list[word] != '\0');
    }
    return UINT_MAX;
}
