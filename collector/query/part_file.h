/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the file of a part of a report (report --partial):
 *
 *     8 bytes  "GPUPART" and a zero
 *     u32      version, PART_VERSION
 *     u32      CRC-32C of all that follows
 *     u64      bytes of the values
 *     u64      bytes of the spans
 *     u32 u32  number of the share, from 0, and of all shares
 *     u64      the set: the hash of all processes of all shares (recording.h)
 *     36 bytes unused
 *     ...      the spans of all streams (base/span_stream.h)
 *     ...      the values
 *
 * All little-endian. Values are numbers (LEB128) and texts (length, bytes, a zero). A table of
 * fields maps them to the members of a struct, for both directions. A reader accepts only its own
 * version, since parts are used up by the job's report.
 *
 * Values are as many as a report's rows; spans are one per kernel of a collective. So values are in
 * memory, and spans in a file of the caller. Reading allocates at most 256 times the values' size,
 * as every count is checked against the bytes left, and 250 bytes for each device; nothing for
 * spans.
 */
#ifndef GPUPROF_COLLECTOR_PART_FILE_H
#define GPUPROF_COLLECTOR_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/histogram.h"
#include "base/message.h"
#include "base/span_stream.h"

#define PART_VERSION       32
#define PART_BYTES_MAX     (1ull << 30) /* of a part's file */
#define SHARES_MAX         65536
#define PART_HISTOGRAM_ROW 2 /* least bytes of a histogram row */

/* Transfers values from their structs to the part, or back. After the first failure numbers read as
 * 0, texts as empty. */
struct part {
    const char *path; /* a view */
    uint32_t index, count;
    uint64_t set;
    bool is_written; /* false: being read */
    bool has_failed; /* impossible counts */
    bool has_more;   /* some list had more rows than fit */
    uint8_t *data;   /* owned: the values */
    size_t length;
    size_t capacity;
    size_t at;                    /* reading: offset of the next value */
    int fd;                       /* a view: the file ... */
    uint64_t file_at, file_bytes; /* ... and where the part lies in it */
    uint64_t span_bytes;          /* of all spans, or written so far */
    uint64_t spans_at;            /* reading: where the next stream lies in the file */
    /* Reading: resolves numbers of processes and devices. */
    struct process *const *processes; /* a view */
    uint32_t process_count;
    uint32_t *devices; /* owned */
    uint32_t device_count;
};

/* ---- members of structs ---- */

enum part_kind {
    PART_END,
    PART_NUMBER,  /* an integer of the member's width */
    PART_FLAG,    /* a bool */
    PART_NUMBERS, /* an array of uint64_t, or a struct of only those */
    PART_CHARS,   /* an array of char with a shorter text */
    PART_TEXT,    /* const char *: a view of the part when read; may be NULL */
    PART_OWNED,   /* char *: likewise, but a copy */
    PART_PROCESS, /* struct process * */
    PART_DEVICE,  /* a uint32_t, its index among the devices of idle time */
    PART_ITEMS    /* a list, allocated by reading */
};

/* How a number read combines with the existing one. */
enum part_join {
    PART_SET,
    PART_ADD,
    PART_OR,
    PART_FIRST, /* the least nonzero number */
    PART_LAST   /* the greatest */
};

struct part_field {
    uint32_t at, bytes; /* of the member */
    enum part_kind kind;
    uint32_t below;                /* exclusive bound of a number or count; 0: none */
    bool is_needed;                /* a text must not be NULL */
    enum part_join join;           /* for numbers and flags */
    uint32_t count_at, item_bytes; /* for a list: the member that counts it, and the item size */
    const struct part_field *items;
};

#define PART_AS(type, member, as, ...)                                                             \
    {                                                                                              \
        .at = offsetof(type, member), .bytes = sizeof(((type *)0)->member), .kind = as,            \
        ##__VA_ARGS__                                                                              \
    }
/* A field whose kind follows from the member's type. */
#define PART(type, member, ...)                                                                    \
    PART_AS(type, member, PART_KIND_OF(((type *)0)->member), ##__VA_ARGS__)
/* Several neighbouring members as PART_NUMBERS. */
#define PART_SPAN(type, first, last)                                                               \
    {                                                                                              \
        .at = offsetof(type, first), .kind = PART_NUMBERS,                                         \
        .bytes = offsetof(type, last) + sizeof(((type *)0)->last) - offsetof(type, first)          \
    }
#define PART_LIST(type, member, count_member, fields, ...)                                         \
    PART_AS(type, member, PART_ITEMS, .count_at = offsetof(type, count_member), .items = fields,   \
            .item_bytes = sizeof *((type *)0)->member, ##__VA_ARGS__)
#define PART_KIND_OF(member)                                                                       \
    _Generic(&(member), uint64_t *                                                                 \
             : PART_NUMBER, uint32_t *                                                             \
             : PART_NUMBER, int32_t *                                                              \
             : PART_NUMBER, uint16_t *                                                             \
             : PART_NUMBER, uint8_t *                                                              \
             : PART_NUMBER, bool *                                                                 \
             : PART_FLAG, const char **                                                            \
             : PART_TEXT, char **                                                                  \
             : PART_OWNED, struct process **                                                       \
             : PART_PROCESS, const struct process **                                               \
             : PART_PROCESS, default                                                               \
             : _Generic((member), char * : PART_CHARS, default : PART_NUMBERS))

/* Transfers the members of the struct `of`. The table of fields ends with kind PART_END. Reading
 * allocates owned members; the caller frees them, also after a failure. */
void part_fields(struct part *p, const struct part_field *fields, void *of);

/* Put or get one row; end the rows. Getting returns false at the end or after a failure. */
void part_put_row(struct part *p, const struct part_field *fields, const void *from);
void part_put_end(struct part *p);
bool part_get_row(struct part *p, const struct part_field *fields, void *to);

/* Reads how many structs of these fields follow. Returns *count. */
uint32_t part_rows(struct part *p, uint32_t *count, const struct part_field *fields);

/* Returns what device number `device` of the part stands for; UINT32_MAX, after setting failed, if
 * it is unknown. */
uint32_t part_device(struct part *p, uint32_t device);

/* ---- single values ---- */

void part_number(struct part *p, uint64_t *number);
void part_u32(struct part *p, uint32_t *number); /* fails if larger */
void part_flag(struct part *p, bool *flag);

/* Reads how many items follow that take at least `bytes` each. Returns *count. */
uint32_t part_count(struct part *p, uint32_t *count, unsigned bytes);

/* Transfers a text: a view of the part when read. May be NULL. */
void part_text(struct part *p, const char **text);
void part_bytes(struct part *p, const uint8_t **data, uint32_t *length);

/* Reading adds to *h; new rows count against *rows_left. */
void part_histogram(struct part *p, struct histogram *h, uint64_t *rows_left);

/* Writes a stream of spans (span_stream.h) to the part's file, which is a temporary one. */
void part_put_spans(struct part *p, struct spool *b, const struct span_stream *s);

/* Sets where the next stream's spans lie in the file, and their number. */
void part_get_spans(struct part *p, struct stored_spans *spans);

/* ---- the file ---- */

/* Begins writing a part at offset `at` of `fd`; the caller then sets which share it is. part_end
 * writes the rest; the part then takes p->file_bytes from `at`. Returns 0 or GPUPROF_IO (errno). */
void part_begin(struct part *p, int fd, uint64_t at);
int part_end(struct part *p);

/* Opens the part at offset `at` of `fd`, which must stay open until the release. Of the `bytes`
 * there, it uses p->file_bytes. Returns NULL, or what is wrong with
 * it; *error is nonzero if the file cannot be read. */
const char *part_open(struct part *p, int fd, uint64_t at, uint64_t bytes, int *error);

/* Copies the file at `path` into `to` at *end, which it advances, and opens the copy. Returns
 * EXIT_OK, or another exit code after one line on stderr. */
enum exit_code part_read(struct part *p, const char *path, int to, uint64_t *end);
void part_release(struct part *p);

#endif
