/* SPDX-License-Identifier: Apache-2.0 */
/* Changed files of columns, for the unit test and the fuzzer: puts their checksums right, so that
 * what lies behind these is reached, and reads all that is in them. */
#ifndef GPUPROF_TEST_COLUMN_HOSTILE_H
#define GPUPROF_TEST_COLUMN_HOSTILE_H

#include <stdlib.h>

#include "bytes.h"
#include "crc32c.h"
#include "error.h"
#include "store/column_layout.h"

/* Of all parts of the entries from `at` on, as far as these and their bytes are there. */
static inline void column_repair_parts(uint8_t *data, size_t size, size_t at)
{
    while (size - at >= 16) {
        uint8_t *words = data + at;
        struct column_entry e = column_entry_get(load_u64(words));
        uint64_t place = load_u64(words + 8);
        if (8 * (size_t)column_entry_words(e) > size - at)
            return;
        for (unsigned i = 0; i < e.parts; i++) {
            uint32_t stored = load_u32(words + 8 * (2 + 2 * (size_t)e.parts + i));
            if (place <= size && stored <= size - place)
                store_u64(words + 8 * (2 + 3 * (size_t)e.parts + i),
                          crc32c(0, data + place, stored));
            place += stored;
        }
        at += 8 * (size_t)column_entry_words(e);
    }
}

static inline void column_repair(uint8_t *data, size_t size, const struct column_key *key)
{
    if (size < COLUMN_HEADER_BYTES)
        return;
    uint64_t at = load_u64(data + COLUMN_AT_DIRECTORY);
    bool is_there = at <= size;
    store_u64(data, COLUMN_FILE_MAGIC);
    store_u32(data + COLUMN_AT_VERSION, COLUMN_FILE_VERSION);
    memcpy(data + COLUMN_AT_KEY, key->bytes, COLUMN_KEY);
    if (is_there)
        column_repair_parts(data, size, at);
    uint32_t crc = crc32c(0, data + COLUMN_AT_KEY, COLUMN_HEADER_BYTES - COLUMN_AT_KEY);
    store_u32(data + COLUMN_AT_CRC, is_there ? crc32c(crc, data + at, size - at) : crc);
}

static inline void column_expect(bool holds)
{
    if (!holds)
        abort();
}

/* Aborts unless all values are within what the heads say, whatever that is. */
static inline void column_read_blocks(struct column_reader *r)
{
    static uint64_t values[COLUMN_ROWS];
    for (uint32_t i = 0; i < column_reader_blocks(r); i++) {
        struct column_block b = column_reader_block(r, i);
        column_expect(b.rows && b.rows <= COLUMN_ROWS && b.table < COLUMN_TABLES);
        column_expect(b.columns && b.columns <= COLUMN_COLUMNS);
        for (unsigned c = 0; c < b.columns; c++) {
            int error = column_reader_get(r, i, c, values);
            column_expect(error == 0 || error == GPUPROF_DAMAGED);
            for (uint32_t row = 0; row < b.rows && error == 0; row++)
                column_expect(values[row] >= b.min[c] && values[row] <= b.max[c]);
        }
    }
}

/* Likewise, and unless a section is there as a whole or not at all. */
static inline void column_read_all(const char *path, const struct column_key *key)
{
    struct column_reader *r;
    enum column_found found = column_reader_open(&r, path, key);
    column_expect((found == COLUMN_FOUND) == (r != NULL));
    if (r)
        column_read_blocks(r);
    for (unsigned i = 0; r && i < COLUMN_SECTIONS; i++) {
        uint8_t *bytes;
        size_t length;
        int error = column_reader_section(r, i, SIZE_MAX, &bytes, &length);
        column_expect(error == 0 || error == GPUPROF_DAMAGED);
        column_expect(error == 0 ? (bytes != NULL) == (length > 0) : !bytes && !length);
        free(bytes);
    }
    column_reader_close(r);
}

#endif
