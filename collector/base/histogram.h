/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of 64-bit values in buckets: exact below 128, then 64 buckets per power of two. So a
 * quantile is off by at most 1 in 128 (0.8 %). Memory: 512 bytes per power of two that occurs,
 * however many values there are.
 */
#ifndef GPUPROF_COLLECTOR_HISTOGRAM_H
#define GPUPROF_COLLECTOR_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BUCKETS 64 /* in a row */
#define HISTOGRAM_ROWS    60 /* row 0: 0 to 63, row 1: 64 to 127, row 2: 128 to 255, ... */

struct histogram {
    uint64_t *rows[HISTOGRAM_ROWS]; /* owned; NULL: the row is empty */
    uint64_t count;
};

void histogram_release(struct histogram *h);

/* Returns a bucket of a new row, or of the first one if *rows_left is 0. */
uint64_t *histogram_make(struct histogram *h, unsigned row, unsigned bucket, uint64_t *rows_left);

/* Counts `value` `weight` times. A new row is taken from *rows_left, which histograms may share. If
 * none is left, the lowest existing row counts it; the first row is always made. */
static inline void histogram_add(struct histogram *h, uint64_t value, uint64_t weight,
                                 uint64_t *rows_left)
{
    /* Row r > 0 holds the values with r + 6 bits; their top 7 bits name the bucket. */
    unsigned row = value < HISTOGRAM_BUCKETS ? 0 : (unsigned)(58 - __builtin_clzll(value));
    unsigned bucket = (unsigned)(row ? value >> (row - 1) : value) % HISTOGRAM_BUCKETS;
    uint64_t *count =
        h->rows[row] ? &h->rows[row][bucket] : histogram_make(h, row, bucket, rows_left);
    *count += weight;
    h->count += weight;
}

/* Returns how many rows files of `bytes` bytes may need; a small hostile file cannot claim more. */
uint64_t histogram_rows_max(uint64_t bytes);

/* Adds all counts of `from` and empties it; rows it frees go back to *rows_left. */
void histogram_move(struct histogram *to, struct histogram *from, uint64_t *rows_left);

/* Returns the value that `fraction` (0 to 1) of all values do not exceed; 0 if the histogram is
 * empty. It is clamped to `least` and `most`, as a bucket's middle may lie outside them. */
uint64_t histogram_quantile(const struct histogram *h, double fraction, uint64_t least,
                            uint64_t most);

/* Returns the smallest value of a bucket; for the bucket after the last, the row's upper bound. */
static inline uint64_t histogram_bucket_begin(unsigned row, unsigned bucket)
{
    uint64_t value = HISTOGRAM_BUCKETS * (row > 0) + bucket;
    unsigned shift = row > 0 ? row - 1 : 0;
    return value << shift >> shift == value ? value << shift : UINT64_MAX;
}

#endif
