/* SPDX-License-Identifier: Apache-2.0 */
/* SHA-256 (FIPS 180-4), for the hashes by which a page names its own script and style. */
#ifndef GPUPROF_COLLECTOR_SHA256_H
#define GPUPROF_COLLECTOR_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES        32
#define SHA256_BASE64_BYTES 45 /* with the terminator */

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;
    uint8_t block[64];
};

void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t length);

/* Writes the hash of all added bytes in base64 (SHA256_BASE64_BYTES) and returns `text`. */
char *sha256_base64(struct sha256 *s, char *text);

#endif
