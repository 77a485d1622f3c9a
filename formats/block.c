/* SPDX-License-Identifier: Apache-2.0 */
#include "block.h"

#include <assert.h>

#include "bytes.h"
#include "crc32c.h"
#include "error.h"

void block_header_write(const struct block_header *h, uint8_t *out)
{
    assert(h->record_count && h->record_count <= BLOCK_RECORDS_MAX && h->min_ns <= h->max_ns &&
           h->position_begin <= h->position_end && h->payload_bytes <= BLOCK_PAYLOAD_BYTES_MAX &&
           h->stored_bytes <= BLOCK_STORED_BYTES_MAX);
    struct byte_writer w = byte_writer(out, BLOCK_HEADER_BYTES);
    put_u32(&w, BLOCK_FRAME_MAGIC);
    put_u32(&w, BLOCK_HEADER_BYTES - 8);
    put_u32(&w, BLOCK_MAGIC);
    put_u32(&w, h->thread);
    put_u32(&w, h->record_count);
    put_u64(&w, h->sequence);
    put_u64(&w, h->min_ns);
    put_u64(&w, h->max_ns);
    put_u64(&w, h->position_begin);
    put_u64(&w, h->position_end);
    put_u32(&w, h->payload_bytes);
    put_u32(&w, h->stored_bytes);
    put_u32(&w, h->stored_crc);
    put_u64(&w, h->types);
    put_u32(&w, h->flags);
    put_u32(&w, crc32c(0, out, w.length));
}

int block_header_read(struct block_header *h, const uint8_t *data, size_t length)
{
    struct byte_reader r = byte_reader(data, length);
    uint32_t frame_magic = get_u32(&r);
    uint32_t frame_bytes = get_u32(&r);
    uint32_t magic = get_u32(&r);
    if (r.failed)
        return GPUPROF_TRUNCATED;
    if (frame_magic != BLOCK_FRAME_MAGIC || magic != BLOCK_MAGIC)
        return 0;
    if (frame_bytes < BLOCK_HEADER_BYTES - 8 || frame_bytes > BLOCK_HEADER_BYTES_MAX - 8)
        return GPUPROF_DAMAGED;
    size_t size = frame_bytes + 8;
    if (size > length)
        return GPUPROF_TRUNCATED;
    h->thread = get_u32(&r);
    h->record_count = get_u32(&r);
    h->sequence = get_u64(&r);
    h->min_ns = get_u64(&r);
    h->max_ns = get_u64(&r);
    h->position_begin = get_u64(&r);
    h->position_end = get_u64(&r);
    h->payload_bytes = get_u32(&r);
    h->stored_bytes = get_u32(&r);
    h->stored_crc = get_u32(&r);
    h->types = get_u64(&r);
    h->flags = get_u32(&r);
    if (load_u32(data + size - 4) != crc32c(0, data, size - 4))
        return GPUPROF_DAMAGED;
    if (h->record_count == 0 || h->record_count > BLOCK_RECORDS_MAX ||
        h->payload_bytes > BLOCK_PAYLOAD_BYTES_MAX || h->stored_bytes > BLOCK_STORED_BYTES_MAX ||
        h->min_ns > h->max_ns || h->position_begin > h->position_end)
        return GPUPROF_DAMAGED;
    return (int)size;
}
