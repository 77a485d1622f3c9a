/* SPDX-License-Identifier: Apache-2.0 */
#include "base/span_stream.h"

void span_reader_init(struct span_reader *r, struct byte_spool *b, const struct span_stream *s)
{
    *r = (struct span_reader){.left = s->count, .spool = b, .place = byte_stream_begin(&s->bytes)};
    r->at = r->end = r->buffer;
}

void span_reader_init_view(struct span_reader *r, const uint8_t *data, size_t length,
                           uint64_t count)
{
    const uint8_t *end = length ? data + length : data; /* of no bytes it may be NULL */
    *r = (struct span_reader){.left = count, .at = data, .end = end};
}

int span_reader_fill(struct span_reader *r)
{
    size_t rest = (size_t)(r->end - r->at), length = 0;
    memmove(r->buffer, r->at, rest);
    int error = byte_stream_next(r->spool, &r->place, r->buffer + rest, &length);
    r->at = r->buffer;
    r->end = r->buffer + rest + length;
    return error;
}
