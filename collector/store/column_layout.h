/* SPDX-License-Identifier: Apache-2.0 */
/* How a file of columns lies on the disk, for its writer and its reader: formats/column-file.md. */
#ifndef GPUPROF_COLLECTOR_COLUMN_LAYOUT_H
#define GPUPROF_COLLECTOR_COLUMN_LAYOUT_H

#include "column.h"
#include "store/column_file.h"

#define COLUMN_FILE_MAGIC   0x00534c4f43555047ull /* "GPUCOLS\0" */
#define COLUMN_FILE_VERSION 1u
#define COLUMN_PIECE_BYTES  65536 /* of a section, stored together */
#define COLUMN_PIECE_RATIO  256   /* how many times a piece may be as long as it is stored */
#define COLUMN_PACKED_MAX   (2 + 8 + 8 * COLUMN_ROWS) /* of a column, before it is compressed */

enum column_place {
    COLUMN_AT_VERSION = 8,
    COLUMN_AT_CRC = 12,
    COLUMN_AT_KEY = 16, /* the CRC covers the header from here on, and the directory */
    COLUMN_AT_DIRECTORY = COLUMN_AT_KEY + COLUMN_KEY,
    COLUMN_HEADER_BYTES = COLUMN_AT_DIRECTORY + 8,
};

/*
 * The directory is 64-bit words. An entry is a block of a table, or a piece of a section, which has
 * one part and no rows. Its first word tells that, the second where its bytes are: behind those of
 * the entry before. Then come the minima of all parts (columns), the maxima, the lengths (as
 * stored, and packed << 32), the CRCs.
 */
struct column_entry {
    unsigned number, parts; /* the table, or COLUMN_TABLES + the section */
    uint32_t rows;
};

static inline uint64_t column_entry_put(struct column_entry e)
{
    return e.number | e.parts << 16 | (uint64_t)e.rows << 32;
}

static inline struct column_entry column_entry_get(uint64_t word)
{
    return (struct column_entry){word & 0xffff, word >> 16 & 0xffff, (uint32_t)(word >> 32)};
}

static inline unsigned column_entry_words(struct column_entry e)
{
    return 2 + 4 * e.parts;
}

/* What is packed may be at most so long. It bounds the memory of a section by the file's size. */
static inline uint64_t column_packed_max(struct column_entry e, uint64_t stored)
{
    uint64_t piece = stored * COLUMN_PIECE_RATIO;
    piece = piece < COLUMN_PIECE_BYTES ? piece : COLUMN_PIECE_BYTES;
    return e.rows ? column_bytes_max(e.rows) : piece;
}

_Static_assert(COLUMN_PIECE_BYTES <= COLUMN_PACKED_MAX, "one buffer holds either");

#endif
