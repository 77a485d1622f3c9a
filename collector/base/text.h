/* SPDX-License-Identifier: Apache-2.0 */
/* Texts: numbers as people read them, texts in new memory, words and times that a user types; and
 * the clock. */
#ifndef GPUPROF_COLLECTOR_TEXT_H
#define GPUPROF_COLLECTOR_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Times, sizes, counts, power and energy. Each writes at most UNIT_TEXT_BYTES to `text` and returns
 * it. */
#define UNIT_TEXT_BYTES 32
const char *time_text(char *text, uint64_t ns);       /* "1.500 ms" */
const char *bytes_text(char *text, uint64_t bytes);   /* "1.5 MiB" */
const char *count_text(char *text, uint64_t count);   /* "1,234,567" */
const char *amount_text(char *text, uint64_t amount); /* "1.235 M" */
const char *power_text(char *text, uint64_t mw);      /* "312.5 W" */
const char *energy_text(char *text, uint64_t mj);     /* "1.235 kJ" */

/* Returns the plural ending for such a count, "s" or "". */
static inline const char *plural_end(uint64_t count)
{
    return count == 1 ? "" : "s";
}

/* A list of numbers as people write it: "0-3, 7". */
#define NUMBER_SPANS_BYTES 512

/* Sorts the numbers and writes their first eight spans to `text`, which it returns. */
char *number_spans_text(uint64_t *numbers, uint32_t count, char text[static NUMBER_SPANS_BYTES]);

/* Print to new memory. */
char *text_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *text_vprintf(const char *format, va_list list) __attribute__((format(printf, 1, 0)));

struct new_text {
    char *text;
    size_t length; /* valid after new_text_end */
};

/* Opens a stream that collects text until new_text_end. */
FILE *new_text_begin(struct new_text *t);

/* Closes the stream and returns the text, which the caller frees. */
char *new_text_end(struct new_text *t, FILE *out);

/* Finds the known word closest to a mistyped one ("did you mean"). */
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

/* Parses a time: "2026-11-23T18:00:00" with an optional fraction, a space instead of T, and "Z" or
 * "+01:00" (default: local time). Without a date it means today, without a time 00:00, local.
 * "@1795456800.5" is seconds since 1970. Sets *ns of CLOCK_REALTIME. Returns false if invalid or
 * outside 1970 to 2096. */
bool moment_parse(const char *text, uint64_t *ns);

/* Parses "90", "1.5m", "2h", "800ms" or "20us", 0 or more. Returns false if invalid. */
bool duration_parse(const char *text, uint64_t *ns);

/* Read CLOCK_MONOTONIC. */
uint64_t monotonic_ns(void);
double monotonic_seconds(void);

#endif
