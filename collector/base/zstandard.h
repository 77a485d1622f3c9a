/* SPDX-License-Identifier: Apache-2.0 */
/* Compression and decompression with zstd. Only this module uses libzstd. */
#ifndef GPUPROF_COLLECTOR_ZSTANDARD_H
#define GPUPROF_COLLECTOR_ZSTANDARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Starts zeroed; what is needed is created at first use. */
struct zstandard {
    struct ZSTD_DCtx_s *decompressor;
    struct ZSTD_CCtx_s *compressor;
};

void zstandard_release(struct zstandard *z);

/* Decompresses into exactly `bytes` bytes at `out`. Returns 0 or GPUPROF_DAMAGED. */
int zstandard_unpack(struct zstandard *z, const uint8_t *stored, size_t stored_bytes, uint8_t *out,
                     size_t bytes);

/* Compresses into a new buffer of *stored_bytes, which it returns. */
uint8_t *zstandard_pack(struct zstandard *z, const uint8_t *data, size_t bytes,
                        size_t *stored_bytes);

/* Compresses the next bytes of a stream. Moves *data over the bytes taken and *out over those
 * written; `ends`: nothing follows. Returns false if all is taken (with `ends`: and written), true
 * if `out` is full (call again). */
bool zstandard_feed(struct zstandard *z, const char **data, size_t *length, bool ends,
                    uint8_t **out, const uint8_t *out_end);

#endif
