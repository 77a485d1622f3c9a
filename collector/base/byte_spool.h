/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of bytes that grow side by side in one spool (spool.h), in chunks that are tied to each
 * other. Memory: the spool's; in it 128 bytes a stream at least.
 */
#ifndef GPUPROF_COLLECTOR_BYTE_SPOOL_H
#define GPUPROF_COLLECTOR_BYTE_SPOOL_H

#include <string.h>

#include "base/spool.h"

#define BYTE_CHUNK_BYTES 120
#define BYTE_FEW         16

struct byte_chunk {
    uint64_t next; /* + 1; 0: none */
    uint8_t bytes[BYTE_CHUNK_BYTES];
};

struct byte_spool {
    struct spool chunks;
};

struct byte_stream {
    uint64_t first, last; /* chunks + 1; 0: none */
    uint64_t length;
    size_t room; /* in the last one */
};

/* On the way through a stream, which must not grow meanwhile. */
struct byte_place {
    uint64_t chunk; /* the next one + 1 */
    uint64_t left;  /* bytes */
};

void byte_spool_init(struct byte_spool *b);
void byte_spool_release(struct byte_spool *b);

/* Adds to the end of a stream, which is all zero before. 0 or an error of the spool. */
int byte_stream_put(struct byte_spool *b, struct byte_stream *s, const uint8_t *data,
                    size_t length);

/* The same of BYTE_FEW bytes at most, of a place with so many, if there is still room where the
 * stream grew last. Else nothing is done. */
static inline bool byte_stream_put_few(struct byte_spool *b, struct byte_stream *s,
                                       const uint8_t data[static BYTE_FEW], size_t length)
{
    int error = 0;
    struct byte_chunk *chunk =
        s->room >= BYTE_FEW ? spool_at(&b->chunks, s->last - 1, true, &error) : NULL;
    if (!chunk)
        return false;
    memcpy(chunk->bytes + BYTE_CHUNK_BYTES - s->room, data, BYTE_FEW); /* what is behind is free */
    s->room -= length;
    s->length += length;
    return true;
}

static inline struct byte_place byte_stream_begin(const struct byte_stream *s)
{
    return (struct byte_place){s->first, s->length};
}

/* The next bytes, *length of them, 0 at the end. 0 or an error of the spool. */
int byte_stream_next(struct byte_spool *b, struct byte_place *p,
                     uint8_t to[static BYTE_CHUNK_BYTES], size_t *length);

#endif
