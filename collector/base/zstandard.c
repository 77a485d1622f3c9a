/* SPDX-License-Identifier: Apache-2.0 */
#include "base/zstandard.h"

#include <stdlib.h>
#include <zstd.h>

#include "base/memory.h"
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
    if (!z->decompressor)
        z->decompressor = memory_from(ZSTD_createDCtx());
    size_t size = ZSTD_decompressDCtx(z->decompressor, out, bytes, stored, stored_bytes);
    return ZSTD_isError(size) || size != bytes ? GPUPROF_DAMAGED : 0;
}

static ZSTD_CCtx *compressor_of(struct zstandard *z)
{
    if (!z->compressor) {
        z->compressor = memory_from(ZSTD_createCCtx());
        ZSTD_CCtx_setParameter(z->compressor, ZSTD_c_compressionLevel, LEVEL);
    }
    return z->compressor;
}

/* Compression fails only without memory. */
static size_t must(size_t size)
{
    if (ZSTD_isError(size))
        memory_missing();
    return size;
}

uint8_t *zstandard_pack(struct zstandard *z, const uint8_t *data, size_t bytes,
                        size_t *stored_bytes)
{
    size_t bound = ZSTD_compressBound(bytes);
    uint8_t *packed = memory_new(1, bound);
    *stored_bytes = must(ZSTD_compress2(compressor_of(z), packed, bound, data, bytes));
    return memory_resize(packed, 1, *stored_bytes);
}

bool zstandard_feed(struct zstandard *z, const char **data, size_t *length, bool ends,
                    uint8_t **out, const uint8_t *out_end)
{
    ZSTD_inBuffer in = {.src = *data, .size = *length};
    ZSTD_outBuffer put = {.dst = *out, .size = (size_t)(out_end - *out)};
    size_t left = must(
        ZSTD_compressStream2(compressor_of(z), &put, &in, ends ? ZSTD_e_end : ZSTD_e_continue));
    *data += in.pos;
    *length -= in.pos;
    *out += put.pos;
    return *length || (ends && left);
}
