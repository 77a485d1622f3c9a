/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Columns: how a sequence of 64-bit values is laid down in a block's payload so that zstd finds
 * what repeats. Values become byte planes (all low bytes, then all second bytes, ...), after a
 * delta or a dictionary where that is shorter. See "Columns" in event-stream.md.
 */
#ifndef GPUPROF_FORMATS_COLUMN_H
#define GPUPROF_FORMATS_COLUMN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bytes.h"

#define COLUMN_DICT_MAX 255
#define COLUMN_AHEAD    32 /* values that are decoded at a time */

enum column_encoding {
    COLUMN_CONST = 0,    /* value u64: every value is this */
    COLUMN_PLANES = 1,   /* width planes of `count` bytes */
    COLUMN_DELTA = 2,    /* planes of zigzag(value[i] - value[i-1]), value[-1] = 0 */
    COLUMN_INCREASE = 3, /* first u64, planes of value[i] - value[i-1] with value[-1] = first */
    COLUMN_DICT = 4,     /* entries u8, entries x u64, one plane of indexes */
    COLUMN_STEP = 5,     /* first u64, planes of zigzag(value[i] - value[i-1]), value[-1] = first */
    COLUMN_FOLLOW = 6,   /* STEP, from the end of what began at value[i-1]; of begins only */
    COLUMN_MAP = 7, /* column u8, entries u8, entries x u64; indexes: that column's one plane */
    COLUMN_ENCODINGS
};

/* Which encodings column_put may try: times only grow or jump, so a dictionary is a waste there. */
enum column_hint { COLUMN_ANY, COLUMN_SORTED, COLUMN_NOISE };

/* Appends the column of values[0..count). `scratch` holds `count` values. */
void column_put(struct byte_writer *w, const uint64_t *values, uint64_t *scratch, size_t count,
                enum column_hint hint);

/*
 * The same for sorted begins of what lasts lengths[i] each: where most begin when the one before
 * has ended, a begin is told from that end.
 */
void column_put_begins(struct byte_writer *w, const uint64_t *values, const uint64_t *lengths,
                       uint64_t *scratch, size_t count);

/*
 * Appends the column as a map from column `number`, whose one plane is `plane`. False, and nothing
 * is appended, if the values are no function of that column's, or the map is no shorter.
 */
bool column_put_map(struct byte_writer *w, const uint64_t *values, size_t count, unsigned number,
                    const uint8_t *plane);

/* The plane of the column of `count` values at `column`, `bytes` long, if a map may be from it. */
const uint8_t *column_map_plane(const uint8_t *column, size_t bytes, size_t count);

/* Appends a column whose values are all the same. */
void column_put_const(struct byte_writer *w, uint64_t value);

/* The most bytes that column_put can take for `count` values. */
static inline size_t column_bytes_max(size_t count)
{
    return 2 + 8 + 8 * count;
}

/* A cursor over an encoded column: yields COLUMN_AHEAD values at a time. A view of the payload. */
struct column_cursor {
    const uint8_t *data; /* planes, `count` bytes each */
    const uint8_t *dict;
    uint64_t value;
    uint32_t count;
    uint32_t index; /* values decoded so far */
    uint8_t encoding;
    uint8_t width;
    uint8_t dict_count;
    uint64_t *ahead; /* the values; room for COLUMN_AHEAD, or as many as there are, which whoever
                      * reads one that is no constant gives; before column_follow what is added */
};

/* Opens the column at `r` which holds `count` values; 0 or GPUPROF_DAMAGED. */
int column_open(struct column_cursor *c, struct byte_reader *r, size_t count);

/* The same for one of the columns of a shape: `shape` are those opened before it. */
int column_open_argument(struct column_cursor *c, struct byte_reader *r, size_t count,
                         const struct column_cursor *shape, size_t shape_count);

/* The same for a column of begins, which may be told from the ends before them. */
int column_open_begins(struct column_cursor *c, struct byte_reader *r, size_t count);

/* Decodes the next COLUMN_AHEAD values, or those that are left, of a column that has planes. */
void column_look_ahead(struct column_cursor *c);

/* Behind that, of begins that are told from the ends before them: they lasted `lengths`, or, where
 * that is NULL, each `length`. */
void column_follow(struct column_cursor *c, const uint64_t *lengths, uint64_t length);

#endif
