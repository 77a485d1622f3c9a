/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/zstandard.h"
#include "bytes.h"
#include "crc32c.h"
#include "error.h"
#include "store/column_layout.h"

struct column_reader {
    int fd;
    struct zstandard zstd;
    uint64_t directory; /* where it begins and the parts end */
    uint64_t *words;    /* owned */
    uint32_t word_count;
    uint32_t *blocks; /* owned; the place of each block's entry in `words` */
    uint32_t block_count;
    uint8_t stored[COLUMN_PACKED_MAX], packed[COLUMN_PACKED_MAX];
};

/* What others could have written is not looked at. */
static enum column_found open_own(struct column_reader *r, const char *path, uint64_t *size)
{
    struct stat status;
    r->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (r->fd < 0)
        return errno == ENOENT || errno == ENOTDIR ? COLUMN_ABSENT : COLUMN_STALE;
    if (fstat(r->fd, &status) < 0)
        return COLUMN_DAMAGED;
    *size = (uint64_t)status.st_size;
    bool is_own = S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
                  !(status.st_mode & (S_IWGRP | S_IWOTH));
    return is_own ? COLUMN_FOUND : COLUMN_STALE;
}

static enum column_found read_directory(struct column_reader *r, const struct column_key *key,
                                        uint64_t size)
{
    uint8_t header[COLUMN_HEADER_BYTES];
    if (file_read_at(r->fd, 0, header, sizeof header) != sizeof header ||
        load_u64(header) != COLUMN_FILE_MAGIC)
        return COLUMN_DAMAGED;
    if (load_u32(header + COLUMN_AT_VERSION) != COLUMN_FILE_VERSION ||
        memcmp(header + COLUMN_AT_KEY, key->bytes, COLUMN_KEY) != 0)
        return COLUMN_STALE;
    r->directory = load_u64(header + COLUMN_AT_DIRECTORY);
    size_t length = r->directory <= size ? size - r->directory : SIZE_MAX;
    if (length % sizeof *r->words || length > COLUMN_DIRECTORY_MAX)
        return COLUMN_DAMAGED;
    r->word_count = (uint32_t)(length / sizeof *r->words);
    r->words = malloc(length + 1);
    if (!r->words || file_read_at(r->fd, r->directory, r->words, length) != (ssize_t)length)
        return COLUMN_DAMAGED;
    uint32_t crc = crc32c(0, header + COLUMN_AT_KEY, sizeof header - COLUMN_AT_KEY);
    if (load_u32(header + COLUMN_AT_CRC) != crc32c(crc, r->words, length))
        return COLUMN_DAMAGED;
    for (uint32_t i = 0; i < r->word_count; i++)
        r->words[i] = le64toh(r->words[i]);
    return COLUMN_FOUND;
}

/* Could a writer have written this part of an entry? */
static bool part_holds(struct column_entry e, const uint64_t *part)
{
    uint64_t min = part[0], max = part[e.parts], length = part[2 * e.parts];
    uint64_t stored = length & UINT32_MAX, packed = length >> 32;
    return min <= max && (min == max) == !stored && stored <= packed &&
           packed <= column_packed_max(e, stored);
}

/* Likewise of its first words. */
static bool entry_holds(struct column_entry e, uint32_t words_left)
{
    bool holds = e.number < COLUMN_TABLES
                     ? e.rows && e.rows <= COLUMN_ROWS && e.parts <= COLUMN_COLUMNS
                     : e.number < COLUMN_TABLES + COLUMN_SECTIONS && !e.rows && e.parts == 1;
    return holds && e.parts && column_entry_words(e) <= words_left;
}

/* The parts fill the file up to the directory. */
static bool index_entries(struct column_reader *r)
{
    uint64_t place = COLUMN_HEADER_BYTES;
    for (uint32_t at = 0; at < r->word_count;) {
        const uint64_t *words = r->words + at;
        struct column_entry e = column_entry_get(words[0]);
        bool holds = entry_holds(e, r->word_count - at) && words[1] == place;
        for (unsigned i = 0; i < e.parts && holds; i++) {
            holds = part_holds(e, words + 2 + i);
            place += words[2 + 2 * e.parts + i] & UINT32_MAX;
        }
        if (!holds || (e.rows && ARRAY_PUSH(r->blocks, r->block_count, &at) < 0))
            return false;
        at += column_entry_words(e);
    }
    return place == r->directory;
}

enum column_found column_reader_open(struct column_reader **reader, const char *path,
                                     const struct column_key *key)
{
    uint64_t size = 0;
    struct column_reader *r = calloc(1, sizeof *r);
    *reader = NULL;
    if (!r)
        return COLUMN_DAMAGED;
    enum column_found found = open_own(r, path, &size);
    if (found == COLUMN_FOUND)
        found = read_directory(r, key, size);
    if (found == COLUMN_FOUND && (!index_entries(r) || zstandard_init(&r->zstd) < 0))
        found = COLUMN_DAMAGED;
    if (found == COLUMN_FOUND)
        *reader = r;
    else
        column_reader_close(r);
    return found;
}

void column_reader_close(struct column_reader *r)
{
    if (!r)
        return;
    if (r->fd >= 0)
        close(r->fd);
    zstandard_release(&r->zstd);
    free(r->words);
    free(r->blocks);
    free(r);
}

uint32_t column_reader_blocks(const struct column_reader *r)
{
    return r->block_count;
}

struct column_block column_reader_block(const struct column_reader *r, uint32_t block)
{
    assert(block < r->block_count);
    const uint64_t *words = r->words + r->blocks[block];
    struct column_entry e = column_entry_get(words[0]);
    return (struct column_block){e.number, e.rows, e.parts, words + 2, words + 2 + e.parts};
}

/* Part `i` of an entry, as it was before it was compressed: *length bytes at *data, a view until
 * the next one. */
static int read_part(struct column_reader *r, const uint64_t *words, unsigned i,
                     const uint8_t **data, size_t *length)
{
    struct column_entry e = column_entry_get(words[0]);
    const uint64_t *lengths = words + 2 + 2 * e.parts;
    uint64_t at = words[1];
    for (unsigned before = 0; before < i; before++)
        at += lengths[before] & UINT32_MAX;
    size_t stored = lengths[i] & UINT32_MAX;
    *length = lengths[i] >> 32;
    *data = stored < *length ? r->packed : r->stored;
    ssize_t got = file_read_at(r->fd, at, r->stored, stored);
    if (got < 0)
        return (int)got;
    if ((size_t)got != stored || crc32c(0, r->stored, stored) != lengths[e.parts + i])
        return GPUPROF_DAMAGED;
    return stored < *length ? zstandard_unpack(&r->zstd, r->stored, stored, r->packed, *length) : 0;
}

/* What is unpacked is what each value is above the minimum; `range` is the most that may be. */
static int unpack_column(const uint8_t *data, size_t length, uint64_t *values, uint32_t rows,
                         uint64_t min, uint64_t range)
{
    struct column_cursor c;
    struct byte_reader in = byte_reader(data, length);
    bool is_beyond = false;
    if (column_open(&c, &in, rows) < 0 || c.encoding == COLUMN_CONST || in.position != length)
        return GPUPROF_DAMAGED;
    while (c.index < rows) {
        uint64_t *next = c.ahead = values + c.index;
        column_look_ahead(&c);
        for (; next < values + c.index; next++) {
            is_beyond |= *next > range;
            *next += min;
        }
    }
    return is_beyond ? GPUPROF_DAMAGED : 0;
}

int column_reader_get(struct column_reader *r, uint32_t block, unsigned column, uint64_t *values)
{
    struct column_block b = column_reader_block(r, block);
    assert(column < b.columns);
    const uint8_t *data;
    size_t length;
    uint64_t min = b.min[column], range = b.max[column] - min;
    for (uint32_t i = 0; i < b.rows && !range; i++)
        values[i] = min;
    if (!range)
        return 0;
    int error = read_part(r, r->words + r->blocks[block], column, &data, &length);
    return error < 0 ? error : unpack_column(data, length, values, b.rows, min, range);
}

int column_reader_section(struct column_reader *r, unsigned section, size_t most, uint8_t **bytes,
                          size_t *length)
{
    uint8_t *all = NULL;
    size_t capacity = 0;
    int error = 0;
    *length = 0;
    for (uint32_t at = 0; at < r->word_count && error == 0;) {
        const uint64_t *words = r->words + at;
        struct column_entry e = column_entry_get(words[0]);
        const uint8_t *data;
        size_t more;
        at += column_entry_words(e);
        if (e.number != COLUMN_TABLES + section ||
            (error = read_part(r, words, 0, &data, &more)) < 0)
            continue;
        if (more > most - *length) {
            error = GPUPROF_DAMAGED;
            break;
        }
        if (more > capacity - *length) {
            capacity = 2 * capacity + more;
            uint8_t *grown = realloc(all, capacity);
            if (!grown) {
                error = GPUPROF_NO_MEMORY;
                break;
            }
            all = grown;
        }
        memcpy(all + *length, data, more);
        *length += more;
    }
    if (error < 0) {
        free(all);
        all = NULL;
        *length = 0;
    }
    *bytes = all;
    return error;
}
