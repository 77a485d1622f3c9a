/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a part of a report (report --partial), and the way of values into and out of it. A
 * part is
 *
 *     8 bytes  "GPUPART" and a zero
 *     u32      version, PART_VERSION
 *     u32      CRC-32C of all that follows
 *     u64      bytes of the values
 *     u64      bytes of the spans before they were compressed
 *     u64      bytes of the spans as they lie in the file
 *     u32 u32  which share it is, from 0 on, of how many
 *     44 bytes the set: the hash of all processes of all shares (share.h)
 *     ...      the spans of all streams (base/span_stream.h), as base/packed.h stores them
 *     ...      the values
 *
 * all little-endian. Values are numbers (LEB128) and texts (their length, their bytes, a zero).
 * Which members of a struct they are, a table of fields says: it is good for both directions. A
 * reader takes its own version only: parts live for as long as a job's report is made.
 *
 * There are as many values as a report has rows, but spans for each kernel of a collective. So
 * values are in memory, and spans go through a file of the caller's, both ways. What is made of the
 * values is at most 128 times their size, since every count is held against the bytes that are
 * left, and 5 KB for each device that it has, FOUND_DEVICES_MAX of them; nothing is made of spans.
 */
#ifndef GPUPROF_COLLECTOR_PART_FILE_H
#define GPUPROF_COLLECTOR_PART_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/histogram.h"
#include "base/message.h"
#include "base/packed.h"
#include "base/sha256.h"
#include "base/span_stream.h"

#define PART_VERSION       25
#define PART_BYTES_MAX     (1ull << 30) /* of a part's file */
#define SHARES_MAX         65536
#define PART_HISTOGRAM_ROW 4 /* bytes that a row of a histogram has at least */

/* A value goes from where it is into the part, or from the part to where it is to be. After the
 * first failure numbers are 0, texts empty. */
struct part {
    const char *path; /* a view */
    uint32_t index, count;
    char set[SHA256_BASE64_BYTES];
    bool is_written; /* or read */
    bool has_failed; /* no memory, or it does not hold what its own counts say */
    bool is_short;   /* no memory where it was read */
    bool has_more;   /* something had more rows than there was room for */
    uint8_t *data;   /* owned: the values */
    size_t length;
    size_t capacity;
    size_t at;                      /* of the next value, where it is read */
    int fd;                         /* a view: the part is in this file, ... */
    uint64_t file_at, file_bytes;   /* ... from here on, and so long */
    struct packed_writer spans_put; /* of a part that is written */
    struct packed spans;            /* of one that is read, with the next stream from ... */
    uint64_t spans_at;              /* ... here on */
    /* What its numbers of processes and devices mean, where it is read. */
    struct process *const *processes; /* a view */
    uint32_t process_count;
    uint32_t *devices; /* owned */
    uint32_t device_count;
};

/* ---- members of structs ---- */

enum part_kind {
    PART_END,
    PART_NUMBER,  /* of the member's width */
    PART_FLAG,    /* a bool */
    PART_NUMBERS, /* an array of uint64_t, or a struct of nothing else */
    PART_CHARS,   /* an array of char, with a text that is shorter than it */
    PART_TEXT,    /* const char *: of the part, where it is read; NULL is kept */
    PART_OWNED,   /* char *: likewise, but a copy */
    PART_PROCESS, /* struct process * */
    PART_PROCESS_INDEX,
    PART_DEVICE, /* a uint32_t, its place among the devices of idle time */
    PART_ITEMS   /* a list that is allocated where it is read */
};

/* What is read replaces a number that is there, or is joined to it. */
enum part_join {
    PART_SET,
    PART_ADD,
    PART_OR,
    PART_FIRST, /* the least that is not 0 */
    PART_LAST   /* the most */
};

struct part_field {
    uint32_t at, bytes; /* of the member */
    enum part_kind kind;
    uint32_t below;      /* a number is less than this, a list has fewer items; 0: it is any */
    bool is_needed;      /* a text is not NULL */
    enum part_join join; /* of numbers and flags */
    uint32_t count_at, item_bytes; /* of a list: the uint32_t that counts it, and its items */
    const struct part_field *items;
};

#define PART_AS(type, member, as, ...)                                                             \
    {                                                                                              \
        .at = offsetof(type, member), .bytes = sizeof(((type *)0)->member), .kind = as,            \
        ##__VA_ARGS__                                                                              \
    }
/* By what the member is. */
#define PART(type, member, ...)                                                                    \
    PART_AS(type, member, PART_KIND_OF(((type *)0)->member), ##__VA_ARGS__)
/* Members from one to another, which are PART_NUMBERS altogether. */
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

/* Fields end with one of kind PART_END. What is owned of what was read the reader frees, also if it
 * failed. */
void part_put(struct part *p, const struct part_field *fields, const void *from);
void part_get(struct part *p, const struct part_field *fields, void *to);

/* Rows one behind the other, and their end. False: that, or it failed. */
void part_put_row(struct part *p, const struct part_field *fields, const void *from);
void part_put_end(struct part *p);
bool part_get_row(struct part *p, const struct part_field *fields, void *to);

/* How many structs of these fields follow. Returns *count. */
uint32_t part_rows(struct part *p, uint32_t *count, const struct part_field *fields);

/* What number `device` of the part means; UINT32_MAX, and failed: there is none. */
uint32_t part_device(struct part *p, uint32_t device);

/* ---- single values ---- */

void part_number(struct part *p, uint64_t *number);
void part_u32(struct part *p, uint32_t *number); /* a larger one is a failure */
void part_flag(struct part *p, bool *flag);

/* How many of something follow, of `bytes` in the part at least each. Returns *count. */
uint32_t part_count(struct part *p, uint32_t *count, unsigned bytes);

/* A view: of the part where it is read. NULL is kept. */
void part_text(struct part *p, const char **text);
void part_bytes(struct part *p, const uint8_t **data, uint32_t *length);

/* What is read is added to *h; rows are taken from *rows_left. */
void part_histogram(struct part *p, struct histogram *h, uint64_t *rows_left);

/* A stream of spans (span_stream.h). 0 or an error of the spool or of the part's file. */
int part_put_spans(struct part *p, struct spool *b, const struct span_stream *s);

/* Where its bytes are in p->spans, and how many spans they are. */
void part_get_spans(struct part *p, struct packed_spans *spans);

/* ---- the file ---- */

/* Begins a part that is written to `fd`, from `at` on; the caller sets which one it is. After the
 * last value part_end writes all that is not there yet: p->file_bytes from there on is the part.
 * 0, GPUPROF_IO (errno) or GPUPROF_NO_MEMORY. */
int part_begin(struct part *p, int fd, uint64_t at);
int part_end(struct part *p);

/* Opens the part that begins at `at` of `fd`, which stays open until it is released; `bytes` are
 * there, of which p->file_bytes are its own. The caller sets p->spans.cache. NULL, or what is wrong
 * with it; without memory, or if the file cannot be read, *error is not 0. */
const char *part_open(struct part *p, int fd, uint64_t at, uint64_t bytes, int *error);

/* Opens a copy of the file at `path` in `to`, made at *end, which it moves on. EXIT_OK, or another
 * exit code after one line on stderr. */
enum exit_code part_read(struct part *p, const char *path, int to, uint64_t *end);
void part_release(struct part *p);

#endif
