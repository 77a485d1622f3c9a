/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of tables: columns of 64-bit values in blocks, and named sections of bytes. It is derived
 * data: a key says what it was made from, and whatever is wrong with it, it is made again. The
 * format: formats/column-file.md. A writer or a reader belongs to one thread at a time; any number
 * of readers and writers may have the same path open.
 */
#ifndef GPUPROF_COLLECTOR_COLUMN_FILE_H
#define GPUPROF_COLLECTOR_COLUMN_FILE_H

#include <stddef.h>
#include <stdint.h>

#define COLUMN_ROWS          16384 /* of a block at most */
#define COLUMN_COLUMNS       32    /* of a block at most */
#define COLUMN_TABLES        32
#define COLUMN_SECTIONS      32
#define COLUMN_KEY           32           /* bytes */
#define COLUMN_DIRECTORY_MAX (256u << 20) /* bytes: of some 400,000 blocks */

struct column_key {
    uint8_t bytes[COLUMN_KEY];
};

struct column_writer;
struct column_reader;

/*
 * Begins a file that replaces `path` when it is whole (output/new_file.h), readable for its owner
 * alone. NULL: *error is GPUPROF_IO (errno) or GPUPROF_NO_MEMORY.
 */
struct column_writer *column_writer_create(const char *path, const struct column_key *key,
                                           int *error);

/*
 * Appends a block of `rows` (1 to COLUMN_ROWS) of a table: `count` columns (1 to COLUMN_COLUMNS),
 * views of `rows` values each. Memory holds only the block's head until the end. 0, GPUPROF_IO
 * (errno) or GPUPROF_NO_MEMORY; after an error the file can only be ended or dropped, which leaves
 * nothing.
 */
int column_writer_block(struct column_writer *w, unsigned table, const uint64_t *const *columns,
                        unsigned count, uint32_t rows);

/* Appends bytes to a section, whose pieces are put together in this order. Errors likewise. */
int column_writer_section(struct column_writer *w, unsigned section, const void *bytes,
                          size_t length);

/* Gives the file its name, or leaves nothing if anything failed since the beginning. Errors
 * likewise; frees `w` in any case. */
int column_writer_end(struct column_writer *w);

/* Leaves nothing behind; frees `w`, which may be NULL. errno stays. */
void column_writer_drop(struct column_writer *w);

enum column_found {
    COLUMN_FOUND,
    COLUMN_ABSENT,
    COLUMN_STALE,   /* another key or version; a link; another user's; others may write it */
    COLUMN_DAMAGED, /* torn, changed, or it cannot be read */
};

/*
 * Opens what a writer made with that key. The file is taken for hostile: memory is bounded by its
 * size and the limits above. *r is NULL unless it is found.
 */
enum column_found column_reader_open(struct column_reader **r, const char *path,
                                     const struct column_key *key);
void column_reader_close(struct column_reader *r); /* NULL is fine */

/* Blocks of all tables, in the order in which they were written. */
uint32_t column_reader_blocks(const struct column_reader *r);

struct column_block {
    uint32_t table, rows, columns;
    const uint64_t *min, *max; /* of each column: views, until the reader is closed */
};

struct column_block column_reader_block(const struct column_reader *r, uint32_t block);

/*
 * Reads one column of a block into `values`, which has room for its rows. 0, GPUPROF_DAMAGED or
 * GPUPROF_IO (errno), and then the values mean nothing. Each value is within the column's min and
 * max.
 */
int column_reader_get(struct column_reader *r, uint32_t block, unsigned column, uint64_t *values);

/*
 * Reads a section into *bytes, which the caller frees; NULL and length 0 if nothing was written to
 * it. 0, GPUPROF_DAMAGED (also if it has more than `most` bytes), GPUPROF_IO (errno) or
 * GPUPROF_NO_MEMORY, and then there is nothing to free.
 */
int column_reader_section(struct column_reader *r, unsigned section, size_t most, uint8_t **bytes,
                          size_t *length);

#endif
