/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <assert.h>
#include <stdlib.h>

void histogram_release(struct histogram *h)
{
    for (unsigned i = 0; i < HISTOGRAM_ROWS; i++)
        free(h->rows[i]);
    *h = (struct histogram){0};
}

/* Real recordings have at least one record per row, and a record takes several bytes. */
#define ROWS_FREE      16384
#define ROW_FILE_BYTES 8

uint64_t histogram_rows_max(uint64_t bytes)
{
    return ROWS_FREE + bytes / ROW_FILE_BYTES;
}

uint64_t *histogram_make(struct histogram *h, unsigned row, unsigned bucket, uint64_t *rows_left)
{
    unsigned first = 0;
    while (first < HISTOGRAM_ROWS && !h->rows[first])
        first++;
    if (!*rows_left && first < HISTOGRAM_ROWS)
        return h->rows[first];
    *rows_left -= *rows_left > 0;
    h->rows[row] = calloc(HISTOGRAM_BUCKETS, sizeof *h->rows[row]);
    return h->rows[row] ? &h->rows[row][bucket] : NULL;
}

void histogram_move(struct histogram *to, struct histogram *from, uint64_t *rows_left)
{
    for (unsigned row = 0; row < HISTOGRAM_ROWS; row++) {
        for (unsigned i = 0; to->rows[row] && from->rows[row] && i < HISTOGRAM_BUCKETS; i++)
            to->rows[row][i] += from->rows[row][i];
        *rows_left += to->rows[row] && from->rows[row];
        if (to->rows[row])
            continue;
        to->rows[row] = from->rows[row];
        from->rows[row] = NULL;
    }
    to->count += from->count;
    histogram_release(from);
}

static uint64_t middle_at(const struct histogram *h, double fraction)
{
    assert(fraction >= 0 && fraction <= 1);
    if (!h->count)
        return 0;
    double exact = fraction * (double)h->count;
    uint64_t rank = (uint64_t)exact;
    rank += (double)rank < exact; /* round up: the smallest value that reaches the fraction */
    rank = rank < 1 ? 1 : rank > h->count ? h->count : rank;
    uint64_t seen = 0;
    for (unsigned row = 0; row < HISTOGRAM_ROWS; row++) {
        for (unsigned bucket = 0; h->rows[row] && bucket < HISTOGRAM_BUCKETS; bucket++) {
            seen += h->rows[row][bucket];
            if (seen < rank)
                continue;
            return histogram_bucket_begin(row, bucket) + (row > 1 ? (1ull << (row - 1)) / 2 : 0);
        }
    }
    return 0;
}

uint64_t histogram_quantile(const struct histogram *h, double fraction, uint64_t least,
                            uint64_t most)
{
    uint64_t value = middle_at(h, fraction);
    value = value > least || !h->count ? value : least;
    return value < most ? value : most;
}
