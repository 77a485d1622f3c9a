/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: the form in which a sequence of 64-bit values is stored in a block's payload, such that
 * zstd finds repetitions. Values become byte planes (all low bytes, then all second bytes, ...),
 * after a delta or a dictionary if that is shorter. See "Columns" in event-stream.md.
 */
#ifndef GPUPROF_FORMATS_COLUMN_H
#define GPUPROF_FORMATS_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

#define COLUMN_DICT_MAX 255
#define COLUMN_AHEAD    32 /* values decoded at a time */

enum column_encoding {
    COLUMN_CONST = 0,    /* value u64: every value is this */
    COLUMN_PLANES = 1,   /* width planes of `count` bytes */
    COLUMN_DELTA = 2,    /* planes of zigzag(value[i] - value[i-1]), value[-1] = 0 */
    COLUMN_INCREASE = 3, /* first u64, planes of value[i] - value[i-1] with value[-1] = first */
    COLUMN_DICT = 4,     /* entries u8, entries x u64, one plane of indexes */
    COLUMN_STEP = 5,     /* first u64, planes of zigzag(value[i] - value[i-1]), value[-1] = first */
    /* STEP, relative to the end of what began at value[i-1]; only for begins */
    COLUMN_FOLLOW = 6,
    COLUMN_MAP = 7, /* column u8, entries u8, entries x u64; indexes: that column's one plane */
    COLUMN_ENCODINGS
};

/* Which encodings column_put may try: times only increase or jump, so a dictionary is useless for
 * them. */
enum column_hint { COLUMN_ANY, COLUMN_SORTED, COLUMN_NOISE };

/* Appends the column of values[0..count). `scratch` has space for `count` values. */
void column_put(struct byte_writer *w, const uint64_t *values, uint64_t *scratch, size_t count,
                enum column_hint hint);

/* The same for sorted begins of items that last lengths[i]: if most begin when the previous one has
 * ended, begins are stored relative to that end. */
void column_put_begins(struct byte_writer *w, const uint64_t *values, const uint64_t *lengths,
                       uint64_t *scratch, size_t count);

/*
 * Appends the column as a map from column `number`, whose single plane is `plane`. Returns false,
 * and appends nothing, if the values are not a function of that column's, or if the map is not
 * shorter.
 */
bool column_put_map(struct byte_writer *w, const uint64_t *values, size_t count, unsigned number,
                    const uint8_t *plane);

/* Returns the plane of the encoded column of `count` values at `column`, `bytes` long, if a map can
 * refer to it. */
const uint8_t *column_map_plane(const uint8_t *column, size_t bytes, size_t count);

/* Appends a column whose values are all the same. */
void column_put_const(struct byte_writer *w, uint64_t value);

/* The most bytes that column_put can take for `count` values. */
static inline size_t column_bytes_max(size_t count)
{
    return 2 + 8 + 8 * count;
}

/* A cursor over an encoded column: decodes COLUMN_AHEAD values at a time. Borrows the payload. */
struct column_cursor {
    const uint8_t *data; /* planes, `count` bytes each */
    const uint8_t *dict;
    uint64_t value;
    uint32_t count;
    uint32_t index; /* values decoded so far */
    uint8_t encoding;
    uint8_t width;
    uint8_t dict_count;
    uint64_t
        *ahead; /* decoded values; the reader of a varying column provides space for COLUMN_AHEAD,
                   or for all if there are fewer; before column_follow, the values to add */
};

/* Opens the column at `r` which holds `count` values; 0 or GPUPROF_DAMAGED. */
int column_open(struct column_cursor *c, struct byte_reader *r, size_t count);

/* The same for a column of a shape's argument: `shape` has those opened before. */
int column_open_argument(struct column_cursor *c, struct byte_reader *r, size_t count,
                         const struct column_cursor *shape, size_t shape_count);

/* The same for a column of begins, which may be relative to the previous ends. */
int column_open_begins(struct column_cursor *c, struct byte_reader *r, size_t count);

/* Decodes the next COLUMN_AHEAD values, or the rest, of a column with planes. */
void column_look_ahead(struct column_cursor *c);

/* Call it after that for begins relative to previous ends: items lasted `lengths`, or each `length`
 * if that is NULL. */
void column_follow(struct column_cursor *c, const uint64_t *lengths, uint64_t length);

#endif
