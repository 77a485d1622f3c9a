/* SPDX-License-Identifier: Apache-2.0 */
#include "output/zstream.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

#define ZSTREAM_LEVEL  4
#define ZSTREAM_BYTES  (1u << 17) /* of compressed data that are written at a time */
#define PART_BYTES_MAX (1u << 30) /* zlib counts in 32 bits */

struct zstream {
    z_stream stream;
    int fd;
    uint32_t crc;
    uint64_t bytes;
    uint64_t compressed;
    uint8_t buffer[ZSTREAM_BYTES];
};

struct zstream *zstream_create(int fd, enum zstream_form form)
{
    struct zstream *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->fd = fd;
    int window = form == ZSTREAM_GZIP ? MAX_WBITS + 16 : -MAX_WBITS;
    if (deflateInit2(&z->stream, ZSTREAM_LEVEL, Z_DEFLATED, window, 8, Z_DEFAULT_STRATEGY) !=
        Z_OK) {
        free(z);
        return NULL;
    }
    z->stream.next_out = z->buffer;
    z->stream.avail_out = ZSTREAM_BYTES;
    return z;
}

/* Writes what is in the buffer and makes it empty. */
static int drain(struct zstream *z)
{
    size_t length = ZSTREAM_BYTES - z->stream.avail_out;
    size_t done = 0;
    while (done < length) {
        ssize_t put = write(z->fd, z->buffer + done, length - done);
        if (put > 0)
            done += (size_t)put;
        else if (put == 0 || errno != EINTR)
            return put == 0 ? ENOSPC : errno;
    }
    z->compressed += length;
    z->stream.next_out = z->buffer;
    z->stream.avail_out = ZSTREAM_BYTES;
    return 0;
}

int zstream_write(struct zstream *z, const char *data, size_t length)
{
    while (length) {
        unsigned part = length < PART_BYTES_MAX ? (unsigned)length : PART_BYTES_MAX;
        z->crc = (uint32_t)crc32(z->crc, (const Bytef *)data, part);
        z->bytes += part;
        z->stream.next_in = (Bytef *)(uintptr_t)data;
        z->stream.avail_in = part;
        while (z->stream.avail_in) {
            if (deflate(&z->stream, Z_NO_FLUSH) != Z_OK)
                return EIO;
            int error = z->stream.avail_out ? 0 : drain(z);
            if (error)
                return error;
        }
        data += part;
        length -= part;
    }
    return 0;
}

int zstream_end(struct zstream *z, struct zstream_sums *sums)
{
    int error = 0;
    int state = Z_OK;
    while (!error && state == Z_OK) {
        state = deflate(&z->stream, Z_FINISH);
        if (state != Z_OK && state != Z_STREAM_END)
            error = EIO;
        else if (!z->stream.avail_out || state == Z_STREAM_END)
            error = drain(z);
    }
    if (sums)
        *sums =
            (struct zstream_sums){.crc = z->crc, .bytes = z->bytes, .compressed = z->compressed};
    deflateEnd(&z->stream);
    free(z);
    return error;
}
