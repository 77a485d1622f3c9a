/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zstandard.h"

#include <stdlib.h>
#include <zstd.h>

#include "error.h"

#define LEVEL 1 /* level 3 does not make traces smaller */

void zstandard_release(struct zstandard *z)
{
    ZSTD_freeDCtx(z->decompressor);
    ZSTD_freeCCtx(z->compressor);
    *z = (struct zstandard){0};
}

int zstandard_unpack(struct zstandard *z, const uint8_t *stored, size_t stored_bytes, uint8_t *out,
                     size_t bytes)
{
    if (!z->decompressor && !(z->decompressor = ZSTD_createDCtx()))
        return GPUPROF_NO_MEMORY;
    size_t size = ZSTD_decompressDCtx(z->decompressor, out, bytes, stored, stored_bytes);
    return ZSTD_isError(size) || size != bytes ? GPUPROF_DAMAGED : 0;
}

static bool need_compressor(struct zstandard *z)
{
    if (!z->compressor)
        z->compressor = ZSTD_createCCtx();
    return z->compressor &&
           !ZSTD_isError(ZSTD_CCtx_setParameter(z->compressor, ZSTD_c_compressionLevel, LEVEL));
}

int zstandard_pack(struct zstandard *z, const uint8_t *data, size_t bytes, uint8_t **stored,
                   size_t *stored_bytes)
{
    size_t bound = ZSTD_compressBound(bytes);
    uint8_t *packed = need_compressor(z) ? malloc(bound) : NULL;
    if (!packed)
        return GPUPROF_NO_MEMORY;
    size_t size = ZSTD_compress2(z->compressor, packed, bound, data, bytes);
    if (ZSTD_isError(size)) {
        free(packed);
        return GPUPROF_NO_MEMORY;
    }
    uint8_t *smaller = realloc(packed, size);
    *stored = smaller ? smaller : packed;
    *stored_bytes = size;
    return 0;
}

int zstandard_feed(struct zstandard *z, const char **data, size_t *length, bool ends, uint8_t **out,
                   const uint8_t *out_end)
{
    ZSTD_inBuffer in = {.src = *data, .size = *length};
    ZSTD_outBuffer put = {.dst = *out, .size = (size_t)(out_end - *out)};
    if (!z->compressor && !need_compressor(z))
        return GPUPROF_NO_MEMORY;
    size_t left =
        ZSTD_compressStream2(z->compressor, &put, &in, ends ? ZSTD_e_end : ZSTD_e_continue);
    *data += in.pos;
    *length -= in.pos;
    *out += put.pos;
    if (ZSTD_isError(left))
        return GPUPROF_NO_MEMORY;
    return *length || (ends && left);
}
