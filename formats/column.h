/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: how a sequence of 64-bit values is laid down in a block's payload so that zstd finds
 * what repeats. Values become byte planes (all low bytes, then all second bytes, ...), after a
 * delta or a dictionary where that is shorter. See "Columns" in event-stream.md.
 */
#ifndef GPUPROF_FORMATS_COLUMN_H
#define GPUPROF_FORMATS_COLUMN_H

#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

#define COLUMN_DICT_MAX 255

enum column_encoding {
    COLUMN_CONST = 0,    /* value u64: every value is this */
    COLUMN_PLANES = 1,   /* width planes of `count` bytes */
    COLUMN_DELTA = 2,    /* planes of zigzag(value[i] - value[i-1]), value[-1] = 0 */
    COLUMN_INCREASE = 3, /* first u64, planes of value[i] - value[i-1] with value[-1] = first */
    COLUMN_DICT = 4,     /* entries u8, entries x u64, one plane of indexes */
};

/* Which encodings column_put may try: times only grow or jump, so a dictionary is a waste there. */
enum column_hint { COLUMN_ANY, COLUMN_SORTED, COLUMN_NOISE };

/* Appends the column of values[0..count). `scratch` holds `count` values. */
void column_put(struct byte_writer *w, const uint64_t *values, uint64_t *scratch, size_t count,
                enum column_hint hint);

/* Appends a column whose values are all the same. */
void column_put_const(struct byte_writer *w, uint64_t value);

/* The most bytes that column_put can take for `count` values. */
static inline size_t column_bytes_max(size_t count)
{
    return 2 + 8 + 8 * count;
}

/* A cursor over an encoded column: yields the values one after another. A view of the payload. */
struct column_cursor {
    const uint8_t *data; /* planes, `count` bytes each */
    const uint8_t *dict;
    uint64_t value;
    uint32_t count;
    uint32_t index;
    uint8_t encoding;
    uint8_t width;
    uint8_t dict_count;
};

/* Opens the column at `r` which holds `count` values; 0 or GPUPROF_DAMAGED. */
int column_open(struct column_cursor *c, struct byte_reader *r, size_t count);

/* column_next for everything but a constant. */
uint64_t column_next_plane(struct column_cursor *c);

/* The next value; 0 after the end, so that a hostile block cannot lead a reader out of its planes.
 */
static inline uint64_t column_next(struct column_cursor *c)
{
    if (c->encoding != COLUMN_CONST)
        return column_next_plane(c);
    return c->index++ < c->count ? c->value : 0;
}

#endif
