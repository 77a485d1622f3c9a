/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts of 64-bit values in buckets whose width grows with the value: exact below 128, above in
 * 64 buckets per power of two, so that a quantile is off by at most 1 in 128 (0.8 %). Memory: 512
 * bytes per power of two that occurs, whatever the number of values.
 */
#ifndef GPUPROF_COLLECTOR_HISTOGRAM_H
#define GPUPROF_COLLECTOR_HISTOGRAM_H

#include <stdint.h>

#include "error.h"

#define HISTOGRAM_BUCKETS 64 /* of a row */
#define HISTOGRAM_ROWS    60 /* row 0: 0 to 63, row 1: 64 to 127, row 2: 128 to 255, ... */

struct histogram {
    uint64_t *rows[HISTOGRAM_ROWS]; /* owned; NULL: nothing there */
    uint64_t count;
};

void histogram_release(struct histogram *h);

/* The bucket to count in where the histogram does not have that row; NULL: no memory. */
uint64_t *histogram_make(struct histogram *h, unsigned row, unsigned bucket, uint64_t *rows_left);

/*
 * Counts `value` `weight` times; a row that is made for it is taken from *rows_left, which
 * histograms may share. If none is left the nearest row that the histogram has must do; its first
 * is always made. 0 or GPUPROF_NO_MEMORY.
 */
static inline int histogram_add(struct histogram *h, uint64_t value, uint64_t weight,
                                uint64_t *rows_left)
{
    /* Row r > 0 holds the values with r + 6 bits; their top 7 bits name the bucket. */
    unsigned row = value < HISTOGRAM_BUCKETS ? 0 : (unsigned)(58 - __builtin_clzll(value));
    unsigned bucket = (unsigned)(row ? value >> (row - 1) : value) % HISTOGRAM_BUCKETS;
    uint64_t *count =
        h->rows[row] ? &h->rows[row][bucket] : histogram_make(h, row, bucket, rows_left);
    if (!count)
        return GPUPROF_NO_MEMORY;
    *count += weight;
    h->count += weight;
    return 0;
}

/* The rows that files of so many `bytes` bear out: a few bytes can say that there are many. */
uint64_t histogram_rows_max(uint64_t bytes);

/* Counts all that `from` has, which is empty then; rows that it gave up may be made again. */
void histogram_move(struct histogram *to, struct histogram *from, uint64_t *rows_left);

/* The value that `fraction` (0 to 1) of all values do not exceed, between the least and the most of
 * them, which a bucket's middle may lie outside of; 0 if there are none. */
uint64_t histogram_quantile(const struct histogram *h, double fraction, uint64_t least,
                            uint64_t most);

/* The smallest value of a bucket; of that behind the last, the one above all of the row's. */
static inline uint64_t histogram_bucket_begin(unsigned row, unsigned bucket)
{
    uint64_t value = HISTOGRAM_BUCKETS * (row > 0) + bucket;
    unsigned shift = row > 0 ? row - 1 : 0;
    return value << shift >> shift == value ? value << shift : UINT64_MAX;
}

#endif
