/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span_stream.h"

#include "base/file_at.h"
#include "error.h"

static int add_chunk(struct spool *b, struct byte_stream *s)
{
    static const struct byte_chunk nothing;
    int error = spool_append(b, &nothing);
    struct byte_chunk *last = error == 0 && s->last ? spool_at(b, s->last - 1, true, &error) : NULL;
    if (error < 0)
        return error;
    if (last)
        last->next = b->count;
    s->last = b->count;
    s->first = s->first ? s->first : s->last;
    s->room = BYTE_CHUNK_BYTES;
    return 0;
}

int byte_stream_put(struct spool *b, struct byte_stream *s, const uint8_t *data, size_t length)
{
    int error = 0;
    while (length) {
        if (!s->room && (error = add_chunk(b, s)) < 0)
            return error;
        struct byte_chunk *chunk = spool_at(b, s->last - 1, true, &error);
        if (!chunk)
            return error;
        size_t bytes = length < s->room ? length : s->room;
        memcpy(chunk->bytes + BYTE_CHUNK_BYTES - s->room, data, bytes);
        s->room -= bytes;
        s->length += bytes;
        data += bytes;
        length -= bytes;
    }
    return 0;
}

int byte_stream_next(struct spool *b, struct byte_place *p, uint8_t to[static BYTE_CHUNK_BYTES],
                     size_t *length)
{
    int error = 0;
    *length = p->left < BYTE_CHUNK_BYTES ? p->left : BYTE_CHUNK_BYTES;
    const struct byte_chunk *chunk = *length ? spool_at(b, p->chunk - 1, false, &error) : NULL;
    if (!chunk)
        return error;
    memcpy(to, chunk->bytes, *length);
    p->chunk = chunk->next;
    p->left -= *length;
    return 0;
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

int span_reader_fill(struct span_reader *r)
{
    size_t rest = (size_t)(r->end - r->at), length = 0;
    memmove(r->buffer, r->at, rest);
    int error = 0;
    if (r->spool)
        error = byte_stream_next(r->spool, &r->place, r->buffer + rest, &length);
    else
        length = read_stored(r, r->buffer + rest);
    r->at = r->buffer;
    r->end = r->buffer + rest + length;
    return error;
}
