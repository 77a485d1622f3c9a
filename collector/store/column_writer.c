/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file_at.h"
#include "base/zstandard.h"
#include "bytes.h"
#include "crc32c.h"
#include "error.h"
#include "output/new_file.h"
#include "store/column_layout.h"

#define GAIN 16 /* what zstd makes smaller by less than one part in so many is stored as it is */

struct section {
    uint8_t *bytes; /* owned; the next piece; NULL: nothing was written to it yet */
    size_t length;
};

struct column_writer {
    struct new_file file;
    struct zstandard zstd;
    struct column_key key;
    int error;       /* the last one */
    uint64_t end;    /* of what is written */
    uint64_t *words; /* owned; the directory, little-endian */
    uint32_t word_count, word_capacity;
    struct section sections[COLUMN_SECTIONS];
    uint64_t shifted[COLUMN_ROWS], scratch[COLUMN_ROWS];
    uint8_t packed[COLUMN_PACKED_MAX];
};

struct column_writer *column_writer_create(const char *path, const struct column_key *key,
                                           int *error)
{
    static const uint8_t no_header[COLUMN_HEADER_BYTES];
    struct column_writer *w = calloc(1, sizeof *w);
    *error = w ? new_file_open(&w->file, path, 0600) : GPUPROF_NO_MEMORY;
    if (*error < 0) {
        free(w);
        return NULL;
    }
    w->key = *key;
    w->end = COLUMN_HEADER_BYTES;
    *error = zstandard_init(&w->zstd);
    if (*error == 0 && file_write_at(w->file.fd, 0, no_header, sizeof no_header) < 0)
        *error = GPUPROF_IO;
    if (*error == 0)
        return w;
    column_writer_drop(w);
    return NULL;
}

/* Appends an entry to the directory, without its parts' words. NULL: no memory. */
static uint64_t *add_entry(struct column_writer *w, struct column_entry e)
{
    unsigned count = column_entry_words(e);
    if ((w->word_count + (size_t)count) * sizeof *w->words > COLUMN_DIRECTORY_MAX)
        return NULL;
    while (w->word_capacity - w->word_count < count)
        if (!array_grow(&w->words, &w->word_capacity, sizeof *w->words, 4096))
            return NULL;
    uint64_t *words = w->words + w->word_count;
    w->word_count += count;
    words[0] = htole64(column_entry_put(e));
    words[1] = htole64(w->end);
    return words;
}

/* Writes part `i` of an entry, compressed if that is worth it, and its words. */
static int write_part(struct column_writer *w, const uint8_t *data, size_t length, uint64_t *words,
                      struct column_entry e, unsigned i)
{
    uint8_t *smaller = NULL;
    size_t stored = 0;
    int error = zstandard_pack(&w->zstd, data, length, &smaller, &stored);
    if (error < 0)
        return error;
    if (stored < length - length / GAIN && length <= column_packed_max(e, stored))
        data = smaller;
    else
        stored = length;
    words[2 + 2 * e.parts + i] = htole64(stored | (uint64_t)length << 32);
    words[2 + 3 * e.parts + i] = htole64(crc32c(0, data, stored));
    error = file_write_at(w->file.fd, w->end, data, stored);
    w->end += stored;
    free(smaller);
    return error;
}

/* Column `i` of a block; its head alone tells a constant one. */
static int write_column(struct column_writer *w, const uint64_t *values, uint64_t *words,
                        struct column_entry e, unsigned i)
{
    uint64_t min = values[0], max = min;
    bool falls = false, is_constant = memcmp(values, values + 1, (e.rows - 1) * sizeof min) == 0;
    for (uint32_t row = 1; !is_constant && row < e.rows; row++) {
        falls |= values[row] < values[row - 1];
        min = values[row] < min ? values[row] : min;
        max = values[row] > max ? values[row] : max;
    }
    words[2 + i] = htole64(min);
    words[2 + e.parts + i] = htole64(max);
    words[2 + 2 * e.parts + i] = words[2 + 3 * e.parts + i] = 0;
    if (min == max)
        return 0;
    struct byte_writer out = byte_writer(w->packed, sizeof w->packed);
    for (uint32_t row = 0; row < e.rows; row++)
        w->shifted[row] = values[row] - min;
    column_put(&out, w->shifted, w->scratch, e.rows, falls ? COLUMN_ANY : COLUMN_SORTED);
    assert(!out.failed);
    return write_part(w, out.data, out.length, words, e, i);
}

int column_writer_block(struct column_writer *w, unsigned table, const uint64_t *const *columns,
                        unsigned count, uint32_t rows)
{
    assert(table < COLUMN_TABLES && count && count <= COLUMN_COLUMNS && rows &&
           rows <= COLUMN_ROWS);
    struct column_entry e = {table, count, rows};
    uint64_t *words = add_entry(w, e);
    int error = words ? 0 : GPUPROF_NO_MEMORY;
    for (unsigned i = 0; i < count && error == 0; i++)
        error = write_column(w, columns[i], words, e, i);
    w->error = error < 0 ? error : w->error;
    return error;
}

static int write_piece(struct column_writer *w, unsigned section)
{
    struct section *s = &w->sections[section];
    struct column_entry e = {COLUMN_TABLES + section, 1, 0};
    uint64_t *words = add_entry(w, e);
    if (!words)
        return GPUPROF_NO_MEMORY;
    size_t length = s->length;
    s->length = 0;
    words[2] = 0;
    words[3] = UINT64_MAX; /* never a constant */
    return write_part(w, s->bytes, length, words, e, 0);
}

int column_writer_section(struct column_writer *w, unsigned section, const void *bytes,
                          size_t length)
{
    assert(section < COLUMN_SECTIONS);
    struct section *s = &w->sections[section];
    int error = s->bytes || (s->bytes = malloc(COLUMN_PIECE_BYTES)) ? 0 : GPUPROF_NO_MEMORY;
    for (const uint8_t *from = bytes; length && error == 0;) {
        size_t room = COLUMN_PIECE_BYTES - s->length, taken = length < room ? length : room;
        memcpy(s->bytes + s->length, from, taken);
        s->length += taken;
        from += taken;
        length -= taken;
        if (s->length == COLUMN_PIECE_BYTES)
            error = write_piece(w, section);
    }
    w->error = error < 0 ? error : w->error;
    return error;
}

static int write_directory(struct column_writer *w)
{
    uint8_t header[COLUMN_HEADER_BYTES] = {0};
    size_t length = w->word_count * sizeof *w->words;
    store_u64(header, COLUMN_FILE_MAGIC);
    store_u32(header + COLUMN_AT_VERSION, COLUMN_FILE_VERSION);
    memcpy(header + COLUMN_AT_KEY, w->key.bytes, COLUMN_KEY);
    store_u64(header + COLUMN_AT_DIRECTORY, w->end);
    uint32_t crc = crc32c(0, header + COLUMN_AT_KEY, sizeof header - COLUMN_AT_KEY);
    store_u32(header + COLUMN_AT_CRC, crc32c(crc, w->words, length));
    int error = file_write_at(w->file.fd, w->end, w->words, length);
    return error < 0 ? error : file_write_at(w->file.fd, 0, header, sizeof header);
}

int column_writer_end(struct column_writer *w)
{
    int error = w->error;
    for (unsigned i = 0; i < COLUMN_SECTIONS && error == 0; i++)
        if (w->sections[i].length)
            error = write_piece(w, i);
    if (error == 0)
        error = write_directory(w);
    if (error == 0)
        error = new_file_place(&w->file, false);
    column_writer_drop(w);
    return error;
}

void column_writer_drop(struct column_writer *w)
{
    if (!w)
        return;
    int saved = errno;
    new_file_drop(&w->file);
    zstandard_release(&w->zstd);
    for (unsigned i = 0; i < COLUMN_SECTIONS; i++)
        free(w->sections[i].bytes);
    free(w->words);
    free(w);
    errno = saved;
}
