/* SPDX-License-Identifier: Apache-2.0 */
#include "crc32c.h"

#include "bytes.h"

#if defined(__x86_64__)
#include <nmmintrin.h>

/* SSE4.2's crc32 instruction is this polynomial; every x86-64 of the last 15 years has it. */
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t crc, const uint8_t *data,
                                                               size_t length)
{
    uint64_t c = crc;
    for (; length >= 8; length -= 8, data += 8)
        c = _mm_crc32_u64(c, load_u64(data));
    for (; length; length--, data++)
        c = _mm_crc32_u8((uint32_t)c, *data);
    return (uint32_t)c;
}
#endif

/* A table for one nibble: 64 bytes of constants instead of a 1 KB table built at run time. */
static const uint32_t nibble_table[16] = {
    0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
    0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75,
};

static uint32_t crc_portable(uint32_t crc, const uint8_t *data, size_t length)
{
    for (; length; length--, data++) {
        crc ^= *data;
        crc = (crc >> 4) ^ nibble_table[crc & 15];
        crc = (crc >> 4) ^ nibble_table[crc & 15];
    }
    return crc;
}

uint32_t crc32c(uint32_t crc, const void *data, size_t length)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2"))
        return ~crc_hardware(~crc, data, length);
#endif
    return ~crc_portable(~crc, data, length);
}
