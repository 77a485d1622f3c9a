/* SPDX-License-Identifier: Apache-2.0 */
#include "file/payload.h"

#include <stdlib.h>
#include <zstd.h>

#include "crc32c.h"
#include "error.h"

int payload_codec_init(struct payload_codec *c)
{
    c->compressor = NULL;
    c->decompressor = ZSTD_createDCtx();
    return c->decompressor ? 0 : GPUPROF_NO_MEMORY;
}

void payload_codec_release(struct payload_codec *c)
{
    ZSTD_freeDCtx(c->decompressor);
    ZSTD_freeCCtx(c->compressor);
    *c = (struct payload_codec){0};
}

int payload_open(struct payload_codec *c, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out)
{
    if (crc32c(0, stored, h->stored_bytes) != h->stored_crc)
        return GPUPROF_DAMAGED;
    size_t size =
        ZSTD_decompressDCtx(c->decompressor, out, h->payload_bytes, stored, h->stored_bytes);
    return ZSTD_isError(size) || size != h->payload_bytes ? GPUPROF_DAMAGED : 0;
}

int payload_store(struct payload_codec *c, struct block_header *h, const uint8_t *payload,
                  uint8_t **stored)
{
    if (!c->compressor)
        c->compressor = ZSTD_createCCtx();
    size_t bound = ZSTD_compressBound(h->payload_bytes);
    uint8_t *data = c->compressor ? malloc(bound) : NULL;
    if (!data)
        return GPUPROF_NO_MEMORY;
    size_t size = ZSTD_compressCCtx(c->compressor, data, bound, payload, h->payload_bytes, 1);
    if (ZSTD_isError(size)) {
        free(data);
        return GPUPROF_NO_MEMORY;
    }
    uint8_t *smaller = realloc(data, size);
    *stored = smaller ? smaller : data;
    h->stored_bytes = (uint32_t)size;
    h->stored_crc = crc32c(0, *stored, size);
    return 0;
}
