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

#define BLOCK_MAGIC             0x31425047u /* "GPB1" */
#define BLOCK_FRAME_MAGIC       0x184D2A5Bu /* the zstd skippable frame that holds a block header */
#define BLOCK_HEADER_BYTES      88          /* whole skippable frame, as this version writes it */
#define BLOCK_HEADER_BYTES_MAX  512 /* a later version may append fields; readers skip them */
#define BLOCK_RECORDS_MAX       8192
#define BLOCK_SHAPES_MAX        256 /* distinct (type, code, argument count) in a block */
#define BLOCK_PAYLOAD_BYTES_MAX (4u << 20)
#define BLOCK_STORED_BYTES_MAX  (BLOCK_PAYLOAD_BYTES_MAX + 4096)
#define BLOCK_TEXT_BYTES_MAX    (1u << 20) /* all byte strings of a block */

struct block_header {
    uint32_t thread; /* the thread's number within the process: 1, 2, ...; 0 is gpuprof */
    uint32_t record_count;
    uint64_t sequence;       /* number of the block in the file: 0, 1, ... */
    uint64_t min_ns;         /* begin of the first record */
    uint64_t max_ns;         /* largest end */
    uint64_t position_begin; /* bytes of raw records that this thread had produced before ... */
    uint64_t position_end;   /* ... and after the records of this block */
    uint32_t payload_bytes;  /* uncompressed */
    uint32_t stored_bytes;   /* of the zstd frame that follows */
    uint32_t stored_crc;     /* crc32c of that frame */
    uint64_t types;          /* of its records, block_type_bit() of each; 0: not said */
    uint32_t flags;          /* enum block_flag */
};

#define BLOCK_TYPES_OTHER 63 /* the bit of this type and all beyond it */

static inline uint64_t block_type_bit(unsigned type)
{
    return UINT64_C(1) << (type < BLOCK_TYPES_OTHER ? type : BLOCK_TYPES_OTHER);
}

enum block_flag {
    /* Of a flight recorder: blocks before this one were let go on purpose, and gaps in the numbers
     * and positions are no loss. */
    BLOCK_AFTER_GAP = 1,
    /* What a dump of one begins with: records from before it that what follows needs. Each is one
     * of a longer sequence, so the block's positions say nothing. */
    BLOCK_OF_STATE = 2,
};

/* Writes BLOCK_HEADER_BYTES at `out`. */
void block_header_write(const struct block_header *h, uint8_t *out);

/*
 * Reads a block header at `data`, of which `length` bytes may be touched. Returns the size of the
 * skippable frame, 0 if no block header starts here, GPUPROF_TRUNCATED or GPUPROF_DAMAGED. Every
 * length in a header that is returned is within its maximum.
 */
int block_header_read(struct block_header *h, const uint8_t *data, size_t length);

/* What the head of a record says of where its parts are. */
struct block_layout {
    uint16_t shape;
    uint16_t byte_count; /* of the byte string */
    uint16_t text_at;    /* word index of the byte string's length; 0 = none */
    uint16_t arguments_at;
};

/*
 * About 500 KB; the caller places it. One thread at a time. What is in the records may change
 * while they are here: they lie where a whole process can write. Nothing is read twice that says
 * where something else is.
 */
struct block_encoder {
    const uint8_t *records[BLOCK_RECORDS_MAX]; /* raw records, views */
    uint64_t values[BLOCK_RECORDS_MAX];
    uint64_t scratch[BLOCK_RECORDS_MAX];
    uint64_t begin_ns[BLOCK_RECORDS_MAX];
    uint64_t duration_ns[BLOCK_RECORDS_MAX];
    struct block_layout layouts[BLOCK_RECORDS_MAX];
    uint16_t order[BLOCK_RECORDS_MAX]; /* of the records in time, and room to sort it */
    uint16_t order_room[BLOCK_RECORDS_MAX];
    const uint8_t *arguments[BLOCK_RECORDS_MAX]; /* views, shape after shape */
    uint32_t shape_keys[BLOCK_SHAPES_MAX];
    uint32_t shape_counts[BLOCK_SHAPES_MAX];
    uint32_t record_count;
    uint32_t shape_count;
    uint32_t raw_bytes;
    uint64_t any_word0; /* all of them ORed: what is 0 in it is 0 in all */
    uint64_t any_word3;
};

void block_encoder_reset(struct block_encoder *e);

/*
 * Adds the raw record at `record`, of which at most `length` bytes may be touched; it is kept as a
 * view until block_encode. Returns its size in bytes; 0 when the block is full and must be encoded
 * first; GPUPROF_TRUNCATED or GPUPROF_DAMAGED for what record_parse would not accept.
 */
int block_encoder_add(struct block_encoder *e, const uint8_t *record, size_t length);

/* The most bytes that block_encode can write for what was added. */
size_t block_encode_bytes_max(const struct block_encoder *e);

/*
 * Sorts the records, converts their times with `scale`, writes the payload to `out` and fills
 * record_count, min_ns, max_ns and payload_bytes of `h`. 0, or GPUPROF_LIMIT if `out` is too small.
 */
int block_encode(struct block_encoder *e, const struct clock_scale *scale, uint8_t *out,
                 size_t capacity, struct block_header *h);

/* Reads a payload, record after record. A view of the payload, which must stay. */
struct block_shape {
    uint8_t type;
    uint8_t arg_count;
    uint16_t code;
    uint16_t varying; /* bit i: argument i is not the same in all records */
    uint32_t count;
    uint32_t left; /* records not yet read */
    uint32_t first_column;
    const uint64_t *ahead; /* a view: of the first argument that varies; ... */
    uint32_t ahead_each;   /* ... the next one's are so many behind */
};

struct block_decoder {
    uint32_t record_count;
    uint32_t index;
    uint32_t shape_count;
    struct block_shape *shapes;    /* owned */
    struct column_cursor *columns; /* owned: BLOCK_COMMON_COLUMNS, then each shape's arguments */
    uint64_t *constants;           /* owned, by column: the value of one that has only one */
    uint64_t *ahead;               /* owned: of the columns that have more than one value */
    size_t bytes;                  /* that it has allocated */
    struct byte_reader text;
    uint16_t varying;         /* as of a shape: of the columns that every record has */
    bool has_rare;            /* flags, results, stacks, weights or texts that differ */
    struct record *last;      /* that was filled, as one of ... */
    struct block_shape *like; /* ... that shape; NULL: all of it is to be filled */
};

/* 0, GPUPROF_DAMAGED or GPUPROF_NO_MEMORY; block_decoder_release is needed only after 0. */
int block_decoder_init(struct block_decoder *d, const uint8_t *payload, size_t length,
                       uint32_t record_count);
void block_decoder_release(struct block_decoder *d);

/* 1 and a record (times in ns; r->bytes is a view of the payload), 0 at the end, GPUPROF_DAMAGED.
 * An `r` that is the one of the call before has what that left in it: what all records have alike
 * is not written again. */
int block_decoder_next(struct block_decoder *d, struct record *r);

#endif
