/* SPDX-License-Identifier: Apache-2.0 */
/* Writes a zstd frame of raw (stored) blocks, for a process in which zstd cannot work: not smaller,
 * but readable by every zstd decoder. After RFC 8878, sections 3.1.1 and 3.1.1.2. */
#ifndef GPUPROF_FORMATS_ZFRAME_H
#define GPUPROF_FORMATS_ZFRAME_H

#include <stddef.h>
#include <stdint.h>

#define ZFRAME_BLOCK_BYTES_MAX 131072

static inline size_t zframe_bytes_max(size_t length)
{
    return 9 + 3 * (length / ZFRAME_BLOCK_BYTES_MAX + 1) + length;
}

/* Writes the frame of `length` bytes (below 4 GiB) to `out`; returns its size, or 0 if it does not
 * fit. */
size_t zframe_write(const uint8_t *data, size_t length, uint8_t *out, size_t capacity);

#endif
