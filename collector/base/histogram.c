/* SPDX-License-Identifier: Apache-2.0 */
#include "base/histogram.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"

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
    h->rows[row] = memory_new(HISTOGRAM_BUCKETS, sizeof *h->rows[row]);
    return &h->rows[row][bucket];
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

uint64_t histogram_quantile(const struct histogram *h, double fraction, uint64_t least,
                            uint64_t most)
{
    assert(fraction >= 0 && fraction <= 1);
    double exact = fraction * (double)h->count;
    uint64_t rank = (uint64_t)exact, seen = 0, value = 0;
    rank += (double)rank < exact; /* round up: the smallest value that reaches the fraction */
    rank = rank < 1 ? 1 : rank > h->count ? h->count : rank;
    if (!h->count)
        return 0;
    for (unsigned row = 0; seen < rank && row < HISTOGRAM_ROWS; row++)
        for (unsigned i = 0; h->rows[row] && seen < rank && i < HISTOGRAM_BUCKETS; i++) {
            seen += h->rows[row][i];
            value = histogram_bucket_begin(row, i) + (row > 1 ? (1ull << (row - 1)) / 2 : 0);
        }
    return value < least ? least : value < most ? value : most;
}
