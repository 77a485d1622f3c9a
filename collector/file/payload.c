/* SPDX-License-Identifier: Apache-2.0 */
#include "file/payload.h"

#include "crc32c.h"
#include "error.h"

int payload_open(struct zstandard *z, const struct block_header *h, const uint8_t *stored,
                 uint8_t *out)
{
    if (crc32c(0, stored, h->stored_bytes) != h->stored_crc)
        return GPUPROF_DAMAGED;
    return zstandard_unpack(z, stored, h->stored_bytes, out, h->payload_bytes);
}

int payload_store(struct zstandard *z, struct block_header *h, const uint8_t *payload,
                  uint8_t **stored)
{
    size_t bytes;
    int error = zstandard_pack(z, payload, h->payload_bytes, stored, &bytes);
    if (error < 0)
        return error;
    h->stored_bytes = (uint32_t)bytes;
    h->stored_crc = crc32c(0, *stored, bytes);
    return 0;
}
