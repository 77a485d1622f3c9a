/* SPDX-License-Identifier: Apache-2.0 */
#include "output/output.h"

#include <errno.h>
#include <isa-l.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file_at.h"
#include "base/zstandard.h"

#define LEVEL         2
#define ZSTREAM_BYTES (1u << 17) /* compressed bytes per write */
#define PART_BYTES    (1u << 18) /* bytes of text compressed at a time */

struct zstream {
    enum zstream_form form;
    int fd;
    struct zstream_sums sums;
    struct isal_zstream isal;
    struct zstandard zstandard;
    uint8_t level_buffer[ISAL_DEF_LVL2_DEFAULT];
    uint8_t buffer[ZSTREAM_BYTES];
    size_t held; /* waiting for the next part */
    char part[PART_BYTES];
};

struct zstream *zstream_create(int fd, enum zstream_form form)
{
    struct zstream *z = calloc(1, sizeof *z);
    if (!z)
        return NULL;
    z->fd = fd;
    z->form = form;
    isal_deflate_init(&z->isal);
    z->isal.level = LEVEL;
    z->isal.level_buf = z->level_buffer;
    z->isal.level_buf_size = sizeof z->level_buffer;
    z->isal.gzip_flag = form == ZSTREAM_GZIP ? IGZIP_GZIP : IGZIP_DEFLATE;
    return z;
}

static int zstream_put(struct zstream *z, size_t length)
{
    z->sums.compressed += length;
    return file_write_next(z->fd, z->buffer, length);
}

static int feed_zstd(struct zstream *z, const char *data, size_t length, bool ends)
{
    int more = 1, error = 0;
    while (more > 0 && !error) {
        uint8_t *end = z->buffer;
        more = zstandard_feed(&z->zstandard, &data, &length, ends, &end, z->buffer + ZSTREAM_BYTES);
        error = more < 0 ? ENOMEM : zstream_put(z, (size_t)(end - z->buffer));
    }
    return error;
}

static int feed_deflate(struct zstream *z, const char *data, size_t length, bool ends)
{
    int error = 0;
    z->isal.next_in = (uint8_t *)(uintptr_t)data;
    z->isal.avail_in = (uint32_t)length;
    z->isal.end_of_stream = ends;
    do {
        z->isal.next_out = z->buffer;
        z->isal.avail_out = ZSTREAM_BYTES;
        if (isal_deflate(&z->isal) != COMP_OK)
            return EIO;
        error = zstream_put(z, ZSTREAM_BYTES - z->isal.avail_out);
    } while (!error && (z->isal.avail_in || !z->isal.avail_out));
    return error;
}

static int feed(struct zstream *z, const char *data, size_t length, bool ends)
{
    return z->form == ZSTREAM_ZSTD ? feed_zstd(z, data, length, ends)
                                   : feed_deflate(z, data, length, ends);
}

/* ISA-L's output depends on the size of its input: with fixed parts equal text gives equal files.
 */
int zstream_write(struct zstream *z, const char *data, size_t length)
{
    int error = 0;
    if (z->form == ZSTREAM_RAW)
        z->sums.crc = crc32_gzip_refl(z->sums.crc, (const uint8_t *)data, length);
    z->sums.bytes += length;
    while (length && !error) {
        size_t taken = PART_BYTES - z->held < length ? PART_BYTES - z->held : length;
        bool is_whole = !z->held && taken == PART_BYTES;
        if (!is_whole)
            memcpy(z->part + z->held, data, taken);
        z->held += taken;
        if (z->held == PART_BYTES) {
            error = feed(z, is_whole ? data : z->part, PART_BYTES, false);
            z->held = 0;
        }
        data += taken;
        length -= taken;
    }
    return error;
}

int zstream_end(struct zstream *z, struct zstream_sums *sums)
{
    int error = feed(z, z->part, z->held, true);
    if (sums)
        *sums = z->sums;
    zstandard_release(&z->zstandard);
    free(z);
    return error;
}

size_t zstream_pack(const uint8_t *data, size_t length, uint8_t *out, size_t room)
{
    struct isal_zstream isal = {0}; /* isal_deflate_init does not set all members */
    uint8_t level_buffer[ISAL_DEF_LVL1_DEFAULT];
    isal_deflate_stateless_init(&isal);
    isal.level = 1;
    isal.level_buf = level_buffer;
    isal.level_buf_size = sizeof level_buffer;
    isal.gzip_flag = IGZIP_ZLIB;
    isal.end_of_stream = 1;
    isal.next_in = (uint8_t *)(uintptr_t)data;
    isal.avail_in = (uint32_t)length;
    isal.next_out = out;
    isal.avail_out = (uint32_t)room;
    return isal_deflate_stateless(&isal) == COMP_OK ? isal.total_out : 0;
}
