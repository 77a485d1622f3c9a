/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file of a part of a report (report --partial), and the way of values into and out of it. A
 * part is
 *
 *     8 bytes  "GPUPART" and a zero
 *     u32      version, PART_VERSION
 *     u32      CRC-32C of all that follows
 *     u64      bytes of the values
 *     u32 u32  which share it is, from 0 on, of how many
 *     44 bytes the set: the hash of all processes of all shares (share.h)
 *     ...      the values
 *
 * all little-endian. Values are numbers (LEB128) and texts (their length, their bytes, a zero);
 * which ones, part_report.c and gpu_report_part.c say: one function goes through them in both
 * directions. A reader takes its own version only: parts live for as long as a job's report is
 * made.
 *
 * Memory: a part is read whole, PART_BYTES_MAX at most; what is made of it is at most 128 times its
 * size, since every count is held against the bytes that are left, and 5 KB for each device that it
 * has, FOUND_DEVICES_MAX of them.
 */
#ifndef GPUPROF_COLLECTOR_PART_FILE_H
#define GPUPROF_COLLECTOR_PART_FILE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/exit_code.h"
#include "base/histogram.h"
#include "base/sha256.h"
#include "base/span_stream.h"

#define PART_VERSION          17
#define PART_BYTES_MAX        (1ull << 30)
#define PART_HEADER_BYTES_MAX 128
#define SHARES_MAX            65536
#define PART_HISTOGRAM_ROW    4 /* bytes that a row of a histogram has at least */

/* A value goes from where it is into the part, or from the part to where it is to be. After the
 * first failure numbers are 0, texts empty. */
struct part {
    const char *path; /* a view */
    uint32_t index, count;
    char set[SHA256_BASE64_BYTES];
    bool is_written; /* or read */
    bool has_failed; /* no memory, or it does not hold what its own counts say */
    uint8_t *data;   /* owned: the values */
    size_t length;
    size_t capacity;
    size_t at; /* of the next value, where it is read */
};

void part_number(struct part *p, uint64_t *number);
void part_numbers(struct part *p, uint64_t *const *numbers, unsigned count);
void part_u32(struct part *p, uint32_t *number); /* a larger one is a failure */
void part_flag(struct part *p, bool *flag);

/* How many of something follow, of `bytes` in the part at least each. Returns *count. */
uint32_t part_count(struct part *p, uint32_t *count, unsigned bytes);

/* A view: of the part where it is read. NULL is kept. */
void part_text(struct part *p, const char **text);
void part_bytes(struct part *p, const uint8_t **data, uint32_t *length);

/* What is read is added to *h; rows are taken from *rows_left. */
void part_histogram(struct part *p, struct histogram *h, uint64_t *rows_left);

/* A stream of spans (span_stream.h); on reading, a view of its bytes. 0 or an error of the spool.
 */
int part_put_spans(struct part *p, struct byte_spool *b, const struct span_stream *s);
void part_get_spans(struct part *p, const uint8_t **data, size_t *length, uint64_t *count);

/* Writes what was put into it. */
void part_write(const struct part *p, FILE *out);

/* Reads the file; p->path is set then. EXIT_OK, or another exit code after one line on stderr. */
enum exit_code part_read(struct part *p, const char *path);
void part_release(struct part *p);

#endif
