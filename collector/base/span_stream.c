/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span_stream.h"

#include "base/file_at.h"

static void add_chunk(struct spool *b, struct byte_stream *s)
{
    static const struct byte_chunk nothing;
    spool_append(b, &nothing);
    if (s->last)
        ((struct byte_chunk *)spool_at(b, s->last - 1, true))->next = b->count;
    s->last = b->count;
    s->first = s->first ? s->first : s->last;
    s->room = BYTE_CHUNK_BYTES;
}

void byte_stream_put(struct spool *b, struct byte_stream *s, const uint8_t *data, size_t length)
{
    while (length) {
        if (!s->room)
            add_chunk(b, s);
        struct byte_chunk *chunk = spool_at(b, s->last - 1, true);
        size_t bytes = length < s->room ? length : s->room;
        memcpy(chunk->bytes + BYTE_CHUNK_BYTES - s->room, data, bytes);
        s->room -= bytes;
        s->length += bytes;
        data += bytes;
        length -= bytes;
    }
}

size_t byte_stream_next(struct spool *b, struct byte_place *p, uint8_t to[static BYTE_CHUNK_BYTES])
{
    size_t length = p->left < BYTE_CHUNK_BYTES ? p->left : BYTE_CHUNK_BYTES;
    if (!length)
        return 0;
    const struct byte_chunk *chunk = spool_at(b, p->chunk - 1, false);
    memcpy(to, chunk->bytes, length);
    p->chunk = chunk->next;
    p->left -= length;
    return length;
}

void span_reader_init(struct span_reader *r, struct spool *b, const struct span_stream *s)
{
    *r = (struct span_reader){.left = s->count, .spool = b, .place = byte_stream_begin(&s->bytes)};
    r->at = r->end = r->buffer;
}

void span_reader_init_stored(struct span_reader *r, const struct stored_spans *s)
{
    *r = (struct span_reader){.left = s->count, .fd = s->fd, .place = {s->at, s->length}};
    r->at = r->end = r->buffer;
}

static size_t read_stored(struct span_reader *r, uint8_t *to)
{
    struct byte_place *place = &r->place;
    size_t bytes = place->left < BYTE_CHUNK_BYTES ? place->left : BYTE_CHUNK_BYTES;
    r->has_failed |= file_read_at(r->fd, place->chunk, to, bytes) != (ssize_t)bytes;
    place->chunk += bytes;
    place->left -= bytes;
    return r->has_failed ? 0 : bytes;
}

void span_reader_fill(struct span_reader *r)
{
    size_t rest = (size_t)(r->end - r->at);
    memmove(r->buffer, r->at, rest);
    uint8_t *to = r->buffer + rest;
    r->at = r->buffer;
    r->end = to + (r->spool ? byte_stream_next(r->spool, &r->place, to) : read_stored(r, to));
}
