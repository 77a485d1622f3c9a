/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sha256.h"

#include <string.h>

#define ROUNDS       64
#define LENGTH_BYTES 8 /* bytes of the final bit count */

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[ROUNDS] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t sha256_turn(uint32_t x, unsigned bits)
{
    return x >> bits | x << (32 - bits);
}

static void sha256_take_block(struct sha256 *s)
{
    uint32_t w[ROUNDS], v[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)s->block[4 * i] << 24 | (uint32_t)s->block[4 * i + 1] << 16 |
               (uint32_t)s->block[4 * i + 2] << 8 | s->block[4 * i + 3];
    for (unsigned i = 16; i < ROUNDS; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (sha256_turn(a, 7) ^ sha256_turn(a, 18) ^ a >> 3) + w[i - 7] +
               (sha256_turn(b, 17) ^ sha256_turn(b, 19) ^ b >> 10);
    }
    memcpy(v, s->state, sizeof v);
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint32_t first = v[7] +
                         (sha256_turn(v[4], 6) ^ sha256_turn(v[4], 11) ^ sha256_turn(v[4], 25)) +
                         ((v[4] & v[5]) ^ (~v[4] & v[6])) + constants[i] + w[i];
        uint32_t second = (sha256_turn(v[0], 2) ^ sha256_turn(v[0], 13) ^ sha256_turn(v[0], 22)) +
                          ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
        memmove(v + 1, v, sizeof v - sizeof *v);
        v[4] += first;
        v[0] = first + second;
    }
    for (unsigned i = 0; i < 8; i++)
        s->state[i] += v[i];
}

void sha256_init(struct sha256 *s)
{
    /* Likewise of the square roots of the first 8 primes. */
    *s = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                   0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *data, size_t length)
{
    for (const uint8_t *p = data, *end = p + length; p < end; p++) {
        s->block[s->bytes++ % sizeof s->block] = *p;
        if (s->bytes % sizeof s->block == 0)
            sha256_take_block(s);
    }
}

char *sha256_base64(struct sha256 *s, char *text)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint64_t bits = 8 * s->bytes;
    uint8_t hash[SHA256_BYTES + 1] = {0}, end[LENGTH_BYTES];
    char *out = text;
    sha256_add(s, "\x80", 1);
    while (s->bytes % sizeof s->block != sizeof s->block - LENGTH_BYTES)
        sha256_add(s, "", 1);
    for (unsigned i = 0; i < LENGTH_BYTES; i++)
        end[i] = (uint8_t)(bits >> (56 - 8 * i));
    sha256_add(s, end, sizeof end);
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        hash[i] = (uint8_t)(s->state[i / 4] >> (24 - 8 * (i % 4)));
    for (unsigned i = 0; i < SHA256_BYTES; i += 3) {
        uint32_t three = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8 |
                         (i + 2 < sizeof hash ? hash[i + 2] : 0);
        for (unsigned k = 0; k < 4; k++)
            *out++ = digits[three >> (18 - 6 * k) & 63];
    }
    out[-1] = '='; /* 32 bytes leave a group of two bytes */
    *out = '\0';
    return text;
}
