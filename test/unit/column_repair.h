/* SPDX-License-Identifier: Apache-2.0 */
/* Puts the checksums of a changed file of columns right, so that what lies behind them is reached:
 * for the unit test and the fuzzer. */
#ifndef GPUPROF_TEST_COLUMN_REPAIR_H
#define GPUPROF_TEST_COLUMN_REPAIR_H

#include "bytes.h"
#include "crc32c.h"
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
    store_u64(data, COLUMN_FILE_MAGIC);
    store_u32(data + COLUMN_AT_VERSION, COLUMN_FILE_VERSION);
    memcpy(data + COLUMN_AT_KEY, key->bytes, COLUMN_KEY);
    store_u64(data + COLUMN_AT_SIZE, size);
    if (at >= COLUMN_HEADER_BYTES && at <= size) {
        column_repair_parts(data, size, at);
        store_u32(data + COLUMN_AT_DIRECTORY_CRC, crc32c(0, data + at, size - at));
    }
    store_u32(data + COLUMN_AT_CRC,
              crc32c(0, data + COLUMN_AT_KEY, COLUMN_HEADER_BYTES - COLUMN_AT_KEY));
}

#endif
