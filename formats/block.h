/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks: the unit of the stream file. A block is a zstd skippable frame that holds its header,
 * then one zstd frame that holds its payload: up to BLOCK_RECORDS_MAX records of one thread, sorted
 * by begin time, as columns. The encoder needs no memory but its own struct and calls nothing, so
 * that it can run inside a profiled process; compressing is the caller's. See event-stream.md.
 */
#ifndef GPUPROF_FORMATS_BLOCK_H
#define GPUPROF_FORMATS_BLOCK_H

#include <stddef.h>
#include <stdint.h>

#include "clock_scale.h"
#include "column.h"
#include "record.h"

#define BLOCK_MAGIC       0x31425047u /* "GPB1" */
#define BLOCK_FRAME_MAGIC 0x184D2A5Bu /* the zstd skippable frame that holds a block header */
/* complete skippable frame, as this version writes it */
#define BLOCK_HEADER_BYTES      88
#define BLOCK_HEADER_BYTES_MAX  512 /* a later version may append fields; readers skip them */
#define BLOCK_RECORDS_MAX       8192
#define BLOCK_SHAPES_MAX        256 /* distinct (type, code, argument count) in a block */
#define BLOCK_PAYLOAD_BYTES_MAX (4u << 20)
#define BLOCK_STORED_BYTES_MAX  (BLOCK_PAYLOAD_BYTES_MAX + 4096)
#define BLOCK_TEXT_BYTES_MAX    (1u << 20) /* all byte strings of a block */

struct block_header {
    uint32_t thread; /* the thread's number in the process: 1, 2, ...; 0: gpuprof */
    uint32_t record_count;
    uint64_t sequence;       /* number of the block in the file: 0, 1, ... */
    uint64_t min_ns;         /* begin of the first record */
    uint64_t max_ns;         /* largest end */
    uint64_t position_begin; /* raw records of this thread before this block, in bytes ... */
    uint64_t position_end;   /* ... and up to its end */
    uint32_t payload_bytes;  /* uncompressed */
    uint32_t stored_bytes;   /* size of the zstd frame that follows */
    uint32_t stored_crc;     /* crc32c of that frame */
    uint64_t types;          /* block_type_bit() of each record; 0: not known */
    uint32_t flags;          /* enum block_flag */
};

#define BLOCK_TYPES_OTHER 63 /* the bit of this type and all higher ones */

static inline uint64_t block_type_bit(unsigned type)
{
    return UINT64_C(1) << (type < BLOCK_TYPES_OTHER ? type : BLOCK_TYPES_OTHER);
}

/* In block_types: calls on which later events may depend. No record has type 0. */
#define BLOCK_STATEFUL UINT64_C(1)

enum block_flag {
    /* Written by a flight recorder, which has dropped earlier blocks on purpose: gaps in the
     * numbers and positions are no loss. */
    BLOCK_AFTER_GAP = 1,
    /* A dump begins with these: earlier records that later ones need. They are selected from a
     * longer sequence, so the block's positions have no meaning. */
    BLOCK_OF_STATE = 2,
    /* Its calls launch, copy, fill or wait, outside of captures: after its work is done, nothing
     * depends on them (api_calls_are_plain). Not set: perhaps some do. */
    BLOCK_PLAIN_CALLS = 4,
};

/* The types of its records, with BLOCK_STATEFUL unless it is said that there are no such calls; 0:
 * not known. */
static inline uint64_t block_types(const struct block_header *h)
{
    bool may_be = h->types & block_type_bit(RECORD_CALL) && !(h->flags & BLOCK_PLAIN_CALLS);
    return (h->types & ~BLOCK_STATEFUL) | (may_be ? BLOCK_STATEFUL : 0);
}

/* Writes BLOCK_HEADER_BYTES to `out`. */
void block_header_write(const struct block_header *h, uint8_t *out);

/*
 * Reads a block header at `data`, of which `length` bytes may be touched. Returns the size of the
 * skippable frame, 0 if no block header starts here, GPUPROF_TRUNCATED or GPUPROF_DAMAGED. Every
 * length in a header that is returned is within its maximum.
 */
int block_header_read(struct block_header *h, const uint8_t *data, size_t length);

/* Where the parts of a record are, from its head. */
struct block_layout {
    uint16_t shape;
    uint16_t byte_count; /* of the byte string */
    uint16_t text_at;    /* word index of the byte string's length; 0: none */
    uint16_t arguments_at;
};

/*
 * About 500 KB; the caller allocates it. One thread at a time. The records may change during
 * encoding, since the whole process can write to them. Anything that says where something else is
 * gets read only once.
 */
struct block_encoder {
    const uint8_t *records[BLOCK_RECORDS_MAX]; /* raw records, borrowed */
    uint64_t values[BLOCK_RECORDS_MAX];
    uint64_t scratch[BLOCK_RECORDS_MAX];
    uint64_t begin_ns[BLOCK_RECORDS_MAX];
    uint64_t duration_ns[BLOCK_RECORDS_MAX];
    struct block_layout layouts[BLOCK_RECORDS_MAX];
    uint16_t order[BLOCK_RECORDS_MAX]; /* order of the records in time, and space for sorting */
    uint16_t order_room[BLOCK_RECORDS_MAX];
    const uint8_t *arguments[BLOCK_RECORDS_MAX]; /* borrowed, shape after shape */
    uint32_t shape_keys[BLOCK_SHAPES_MAX];
    uint32_t shape_counts[BLOCK_SHAPES_MAX];
    uint32_t record_count;
    uint32_t shape_count;
    uint32_t raw_bytes;
    uint64_t any_word0; /* all of them ORed: bits that are 0 here are 0 in all */
    uint64_t any_word3;
};

void block_encoder_reset(struct block_encoder *e);

/*
 * Adds the raw record at `record`, reading at most `length` bytes of it. The record must stay until
 * block_encode. Returns its size in bytes; 0: the block is full and must be encoded first;
 * GPUPROF_TRUNCATED or GPUPROF_DAMAGED if record_parse would not accept it.
 */
int block_encoder_add(struct block_encoder *e, const uint8_t *record, size_t length);

/* Returns the most bytes that block_encode can write for the added records. */
size_t block_encode_bytes_max(const struct block_encoder *e);

/*
 * Sorts the records, converts their times with `scale`, writes the payload to `out` and fills
 * record_count, min_ns, max_ns and payload_bytes of `h`. 0, or GPUPROF_LIMIT if `out` is too small.
 */
int block_encode(struct block_encoder *e, const struct clock_scale *scale, uint8_t *out,
                 size_t capacity, struct block_header *h);

/* Reads a payload record by record. Borrows the payload, which must stay. */
struct block_shape {
    uint8_t type;
    uint8_t arg_count;
    uint16_t code;
    uint16_t varying; /* bit i: argument i differs between records */
    uint32_t count;
    uint32_t left; /* records still to be read */
    uint32_t first_column;
    const uint64_t *ahead; /* borrowed: of the first varying argument; ... */
    uint32_t ahead_each;   /* ... distance to the next one's */
};

struct block_decoder {
    uint32_t record_count;
    uint32_t index;
    uint32_t shape_count;
    struct block_shape *shapes; /* owned */
    /* owned: BLOCK_COMMON_COLUMNS, then the arguments of each shape */
    struct column_cursor *columns;
    uint64_t *constants; /* owned, by column: the value of a constant column */
    uint64_t *ahead;     /* owned: of the varying columns */
    size_t bytes;        /* allocated bytes */
    struct byte_reader text;
    uint16_t varying;         /* as for a shape, for the columns that every record has */
    bool has_rare;            /* flags, results, stacks, weights or texts vary */
    struct record *last;      /* the record filled last, as one of ... */
    struct block_shape *like; /* ... this shape; NULL: everything must be filled in */
};

/* Returns 0, GPUPROF_DAMAGED or GPUPROF_NO_MEMORY; call block_decoder_release only after 0. */
int block_decoder_init(struct block_decoder *d, const uint8_t *payload, size_t length,
                       uint32_t record_count);
void block_decoder_release(struct block_decoder *d);

/*
 * Returns 1 and a record (times in ns; r->bytes points into the payload), 0 at the end, or
 * GPUPROF_DAMAGED. If `r` is the same as in the previous call, its values must be unchanged: those
 * that all records share are not written again.
 */
int block_decoder_next(struct block_decoder *d, struct record *r);

#endif
