/* SPDX-License-Identifier: Apache-2.0 */
/* Compressing and decompressing as zstd does. The one place that knows libzstd. */
#ifndef GPUPROF_COLLECTOR_ZSTANDARD_H
#define GPUPROF_COLLECTOR_ZSTANDARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct zstandard {
    struct ZSTD_DCtx_s *decompressor;
    struct ZSTD_CCtx_s *compressor; /* made at the first use */
};

/* 0 or GPUPROF_NO_MEMORY. */
int zstandard_init(struct zstandard *z);
void zstandard_release(struct zstandard *z);

/* Decompresses what must become exactly so many `bytes` to `out`. 0 or GPUPROF_DAMAGED. */
int zstandard_unpack(struct zstandard *z, const uint8_t *stored, size_t stored_bytes, uint8_t *out,
                     size_t bytes);

/* Compresses into a new buffer. 0 and *stored (the caller frees), or GPUPROF_NO_MEMORY. */
int zstandard_pack(struct zstandard *z, const uint8_t *data, size_t bytes, uint8_t **stored,
                   size_t *stored_bytes);

/*
 * Compresses the next bytes of a stream: moves *data on as far as they are taken, and *out as far
 * as there is something to write; `ends`: nothing follows. 0: all is taken, and with `ends` all is
 * in `out`; 1: there was no room for all, call again; GPUPROF_NO_MEMORY.
 */
int zstandard_feed(struct zstandard *z, const char **data, size_t *length, bool ends, uint8_t **out,
                   const uint8_t *out_end);

#endif
