/* SPDX-License-Identifier: Apache-2.0 */
#include "zframe.h"

#include "bytes.h"

size_t zframe_write(const uint8_t *data, size_t length, uint8_t *out, size_t capacity)
{
    struct byte_writer w = byte_writer(out, capacity);
    put_u32(&w, 0xFD2FB528u);
    put_u8(&w, 0xA0); /* content size in 4 bytes, single segment, no checksum, no dictionary */
    put_u32(&w, (uint32_t)length);
    size_t done = 0;
    do {
        size_t part = length - done;
        if (part > ZFRAME_BLOCK_BYTES_MAX)
            part = ZFRAME_BLOCK_BYTES_MAX;
        uint32_t head = (uint32_t)part << 3 | (done + part == length); /* type 0, raw; last bit */
        put_u8(&w, (uint8_t)head);
        put_u8(&w, (uint8_t)(head >> 8));
        put_u8(&w, (uint8_t)(head >> 16));
        put_bytes(&w, data + done, part);
        done += part;
    } while (done < length);
    return w.failed ? 0 : w.length;
}
