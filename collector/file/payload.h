/* SPDX-License-Identifier: Apache-2.0 */
/* The stored payload of a block, checked and decompressed. */
#ifndef GPUPROF_COLLECTOR_PAYLOAD_H
#define GPUPROF_COLLECTOR_PAYLOAD_H

#include <stdint.h>

#include "base/zstandard.h"
#include "block.h"

/*
 * Checks the checksum of the stored_bytes at `stored` and decompresses them to `out`, which has
 * room for h->payload_bytes. 0 or GPUPROF_DAMAGED.
 */
int payload_open(struct zstandard *z, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out);

/*
 * Compresses h->payload_bytes at `payload` into a new buffer and fills stored_bytes and stored_crc
 * of `h`. 0 and *stored (the caller frees), or GPUPROF_NO_MEMORY.
 */
int payload_store(struct zstandard *z, struct block_header *h, const uint8_t *payload,
                  uint8_t **stored);

#endif
