/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte stream of time spans with a few numbers each. Per span:
 *
 *     u8       a bit for each number that differs from the expected one
 *     number   begin, relative to the previous span's (the first: to 0)
 *     number   its length
 *     numbers  those that differ
 *
 * in LEB128. The expected number is the previous one; for a number that counts, that plus 1 unless
 * it was 0. So most spans take five or six bytes.
 */
#ifndef GPUPROF_COLLECTOR_SPAN_STREAM_H
#define GPUPROF_COLLECTOR_SPAN_STREAM_H

#include <stdbool.h>
#include <string.h>

#include "base/spool.h"
#include "bytes.h"

/* Byte streams that grow side by side in one spool (spool.h), as linked chunks. Memory: the
 * spool's; each stream takes at least 512 bytes there. */
#define BYTE_CHUNK_BYTES 504

struct byte_chunk {
    uint64_t next; /* index + 1; 0: none */
    uint8_t bytes[BYTE_CHUNK_BYTES];
};

struct byte_stream {
    uint64_t first, last; /* indices + 1; 0: none */
    uint64_t length;
    size_t room; /* left in the last chunk */
};

/* A position in a stream, which must not grow meanwhile. */
struct byte_place {
    uint64_t chunk; /* index + 1 of the next chunk */
    uint64_t left;  /* bytes */
};

/* Appends to a stream, which starts zeroed. */
void byte_stream_put(struct spool *b, struct byte_stream *s, const uint8_t *data, size_t length);

/* The place of the next `length` bytes, if the last chunk has that much room. NULL: use
 * byte_stream_put. */
static inline uint8_t *byte_stream_room(struct spool *b, const struct byte_stream *s, size_t length)
{
    struct byte_chunk *chunk = s->room >= length ? spool_at(b, s->last - 1, true) : NULL;
    return chunk ? chunk->bytes + BYTE_CHUNK_BYTES - s->room : NULL;
}

static inline struct byte_place byte_stream_begin(const struct byte_stream *s)
{
    return (struct byte_place){s->first, s->length};
}

/* Copies the next bytes and returns how many; 0 at the end. */
size_t byte_stream_next(struct spool *b, struct byte_place *p, uint8_t to[static BYTE_CHUNK_BYTES]);

#define SPAN_NUMBERS_MAX 6
#define SPAN_BYTES_MAX   (1 + (2 + SPAN_NUMBERS_MAX) * VARINT_BYTES_MAX)
#define SPAN_BYTES       3 /* least bytes of a span */
struct span {
    uint64_t begin_ns, end_ns;
    uint64_t numbers[SPAN_NUMBERS_MAX];
};

/* How many numbers a span has, and a bit for each that counts up. */
struct span_kind {
    unsigned count, counts;
};

struct span_stream {
    struct byte_stream bytes;
    struct span before;
    uint64_t count;
};

/* A stream of `count` spans in a file: `length` bytes from `at`. */
struct stored_spans {
    int fd;      /* a view */
    uint64_t at; /* 0: no stream */
    uint64_t length, count;
};

/* A position in a span stream. */
struct span_reader {
    struct span span; /* the last span read */
    uint64_t left;
    bool has_failed; /* the file is damaged */
    const uint8_t *at, *end;
    struct spool *spool;     /* NULL: the stream is in the file `fd` */
    struct byte_place place; /* in a file: offset and remaining bytes */
    int fd;
    uint8_t buffer[SPAN_BYTES_MAX + BYTE_CHUNK_BYTES];
};

static inline uint64_t span_expected(const struct span *before, struct span_kind kind, unsigned i)
{
    uint64_t number = before->numbers[i];
    return number + (kind.counts >> i & 1 && number);
}

static inline uint8_t *span_put_number(uint8_t *to, uint64_t number)
{
    for (; number >= 0x80; number >>= 7)
        *to++ = (uint8_t)(number | 0x80);
    *to++ = (uint8_t)number;
    return to;
}

/* Encodes a span relative to *before, then sets *before to it. Returns the bytes. */
static inline size_t span_code(uint8_t bytes[static SPAN_BYTES_MAX], struct span *before,
                               const struct span *span, struct span_kind kind)
{
    unsigned others = 0;
    uint8_t *to = span_put_number(bytes + 1, span->begin_ns - before->begin_ns);
    to = span_put_number(to, span->end_ns - span->begin_ns);
    before->begin_ns = span->begin_ns;
    before->end_ns = span->end_ns;
#pragma GCC unroll 8
    for (unsigned i = 0; i < kind.count; i++) {
        /* One by one: a vector that loads words just written waits for them. */
        uint64_t number = span->numbers[i], expected = span_expected(before, kind, i);
        before->numbers[i] = number;
        if (number == expected)
            continue;
        others |= 1u << i;
        to = span_put_number(to, number);
    }
    bytes[0] = (uint8_t)others;
    return (size_t)(to - bytes);
}

/* Appends a span to a stream, which starts zeroed. */
static inline void span_put(struct spool *b, struct span_stream *s, const struct span *span,
                            struct span_kind kind)
{
    uint8_t bytes[SPAN_BYTES_MAX], *room = byte_stream_room(b, &s->bytes, SPAN_BYTES_MAX);
    size_t length = span_code(room ? room : bytes, &s->before, span, kind);
    s->count++;
    if (!room) {
        byte_stream_put(b, &s->bytes, bytes, length);
        return;
    }
    s->bytes.room -= length;
    s->bytes.length += length;
}

/* Start reading from the first span. */
void span_reader_init(struct span_reader *r, struct spool *b, const struct span_stream *s);
void span_reader_init_stored(struct span_reader *r, const struct stored_spans *s);

/* Refills the buffer. A file that cannot be read sets r->has_failed. */
void span_reader_fill(struct span_reader *r);

static inline uint64_t span_get_number(const uint8_t **at, const uint8_t *end, bool *has_failed)
{
    uint64_t number = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return number;
    }
    *has_failed = true;
    return 0;
}

/* Reads the next span into r->span. Returns false at the end or after damage. */
static inline bool span_next(struct span_reader *r, struct span_kind kind)
{
    struct span *span = &r->span;
    if (!r->left || r->has_failed) {
        r->has_failed |= r->at != r->end || r->place.left;
        return false;
    }
    if (r->place.left && r->end - r->at < SPAN_BYTES_MAX)
        span_reader_fill(r);
    const uint8_t *at = r->at, *end = r->end; /* local copies stay in registers */
    bool has_failed = false;
    unsigned others = at < end ? *at++ : 0;
    span->begin_ns += span_get_number(&at, end, &has_failed);
    span->end_ns = span->begin_ns + span_get_number(&at, end, &has_failed);
#pragma GCC unroll 8
    for (unsigned i = 0; i < kind.count; i++)
        span->numbers[i] =
            others >> i & 1 ? span_get_number(&at, end, &has_failed) : span_expected(span, kind, i);
    r->at = at;
    r->has_failed |= has_failed;
    r->left--;
    return !r->has_failed;
}

#endif
