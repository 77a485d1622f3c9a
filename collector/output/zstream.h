/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compressing what is written into a file: as gzip, as an archive's member, or as zstd. The one
 * place that knows ISA-L, which makes gzip eight times as fast as zlib does, and a seventh larger.
 */
#ifndef GPUPROF_COLLECTOR_ZSTREAM_H
#define GPUPROF_COLLECTOR_ZSTREAM_H

#include <stddef.h>
#include <stdint.h>

enum zstream_form { ZSTREAM_GZIP, ZSTREAM_RAW, ZSTREAM_ZSTD };

struct zstream;

/* Compresses into the open file `fd`, which stays the caller's. NULL: no memory. */
struct zstream *zstream_create(int fd, enum zstream_form form);

/* 0, or the errno of the write that failed. */
int zstream_write(struct zstream *z, const char *data, size_t length);

/* Compresses a piece as zlib's format has it. Its bytes, or 0: they are more than `room`. */
size_t zstream_pack(const uint8_t *data, size_t length, uint8_t *out, size_t room);

struct zstream_sums {
    uint32_t crc; /* of a member: CRC-32 of what was written, before compression */
    uint64_t bytes;
    uint64_t compressed;
};

/* Ends the stream and frees it; `sums` may be NULL. 0 or an errno. */
int zstream_end(struct zstream *z, struct zstream_sums *sums);

#endif
