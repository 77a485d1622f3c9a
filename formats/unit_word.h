/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times, as users write them: an amount and the word of its unit. */
#ifndef GPUPROF_FORMATS_UNIT_WORD_H
#define GPUPROF_FORMATS_UNIT_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The bytes of "K", "KB" or "KiB", which are the same, and of M, G and T, in any case: 1024 of the
 * one before. 0: it is none of them. */
uint64_t unit_bytes(const char *word, size_t length);

/* The nanoseconds of "ns", "us", "ms", "s", "m" or "min", and "h"; 0. */
uint64_t unit_ns(const char *word, size_t length);

/* "12", "1.5" or ".5"; what is smaller than a billionth is left out. */
struct amount {
    uint64_t whole;
    uint32_t billionths;
    bool has_point;
};

/* Reads one that begins at `text`; where it ends, `end` at the latest. NULL: there is none. */
const char *amount_read(const char *text, const char *end, struct amount *a);

/* So many units, rounded down. False: it is above 2^63, or the unit is 0. */
bool amount_times(const struct amount *a, uint64_t unit, uint64_t *number);

#endif
