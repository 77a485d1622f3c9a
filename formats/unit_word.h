/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and times as users write them: an amount and a unit. */
#ifndef GPUPROF_FORMATS_UNIT_WORD_H
#define GPUPROF_FORMATS_UNIT_WORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the bytes of "K", "KB" or "KiB" (all the same), and of M, G and T, in any case, each 1024
 * times the previous one. 0: unknown. */
uint64_t unit_bytes(const char *word, size_t length);

/* Returns the nanoseconds of "ns", "us", "ms", "s", "m" or "min", and "h"; 0: unknown. */
uint64_t unit_ns(const char *word, size_t length);

/* "12", "1.5" or ".5"; digits below a billionth are dropped. */
struct amount {
    uint64_t whole;
    uint32_t billionths;
    bool has_point;
};

/*
 * Reads an amount that begins at `text`; returns where it ends, at most `end`. NULL: there is none.
 */
const char *amount_read(const char *text, const char *end, struct amount *a);

/* Multiplies by the unit, rounding down. Returns false if the result is above 2^63, or the unit is
 * 0. */
bool amount_times(const struct amount *a, uint64_t unit, uint64_t *number);

#endif
