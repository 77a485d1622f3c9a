/* SPDX-License-Identifier: Apache-2.0 */
#include "file/stream_scan.h"

#include <string.h>

#include "bytes.h"
#include "error.h"

#define SKIPPABLE_MAGIC      0x184D2A50u /* 16 magics, RFC 8878 section 3.1.2 */
#define SKIPPABLE_MAGIC_MASK 0xFFFFFFF0u

enum place { PLACE_BLOCK, PLACE_FRAME, PLACE_END, PLACE_TORN, PLACE_NOTHING };

void stream_scan_init(struct stream_scan *s, struct stream_file *file, struct file_pool *pool,
                      uint64_t offset)
{
    *s = (struct stream_scan){.file = file, .pool = pool, .offset = offset, .search_from = offset};
}

/* What stands at `offset`; for PLACE_BLOCK and PLACE_FRAME *size is the size of the frame there. */
static int place_at(struct stream_scan *s, uint64_t offset, struct block_header *h, uint64_t *size)
{
    const uint8_t *data;
    if (offset >= s->file->size)
        return PLACE_END;
    ssize_t there = stream_file_look(s->file, s->pool, offset, BLOCK_HEADER_BYTES_MAX, 0, &data);
    if (there < 0)
        return (int)there;
    if (there == 0)
        return PLACE_END; /* the file has shrunk */
    int read = block_header_read(h, data, (size_t)there);
    if (read > 0) {
        *size = (uint64_t)read;
        return PLACE_BLOCK;
    }
    if (read == GPUPROF_TRUNCATED) {
        /* Fewer bytes than a header, and what is there begins like one. */
        uint8_t magic[4];
        store_u32(magic, BLOCK_FRAME_MAGIC);
        size_t compare = there < 4 ? (size_t)there : 4;
        return memcmp(data, magic, compare) == 0 ? PLACE_TORN : PLACE_NOTHING;
    }
    /* A frame that a later version put between blocks, if it leads to somewhere. */
    uint32_t frame_magic = load_u32(data);
    if (read == 0 && (frame_magic & SKIPPABLE_MAGIC_MASK) == SKIPPABLE_MAGIC &&
        frame_magic != BLOCK_FRAME_MAGIC && there >= 8) {
        *size = (uint64_t)load_u32(data + 4) + 8;
        return *size <= s->file->size - offset ? PLACE_FRAME : PLACE_NOTHING;
    }
    return PLACE_NOTHING;
}

/* The offset of the next valid block header at or behind `from`; the file's size if none is left.
 */
static int search(struct stream_scan *s, uint64_t from, uint64_t *found)
{
    uint8_t magic[4];
    store_u32(magic, BLOCK_FRAME_MAGIC);
    uint64_t at = from;
    while (at < s->file->size) {
        const uint8_t *data;
        ssize_t there = stream_file_look(s->file, s->pool, at, BLOCK_HEADER_BYTES_MAX,
                                         STREAM_WINDOW_BYTES, &data);
        if (there < 0)
            return (int)there;
        if (there < BLOCK_HEADER_BYTES)
            break;
        const uint8_t *p = memmem(data, (size_t)there, magic, sizeof magic);
        if (!p) {
            at = stream_file_data(s->file, s->pool, at + (uint64_t)there - 3);
            continue;
        }
        at += (uint64_t)(p - data);
        struct block_header h;
        uint64_t size;
        int place = place_at(s, at, &h, &size);
        if (place < 0)
            return place;
        if (place == PLACE_BLOCK) {
            *found = at;
            return 0;
        }
        at++;
    }
    *found = s->file->size;
    return 0;
}

/* Goes on behind something that is no block: 1 if a block header stands at s->offset now. */
static int resynchronise(struct stream_scan *s, bool torn)
{
    uint64_t found = s->file->size;
    int error = search(s, s->search_from, &found);
    if (error < 0)
        return error;
    if (found >= s->file->size && torn) {
        s->torn = s->file->size - s->offset;
        s->offset = s->file->size;
        return 0;
    }
    /* A search from inside the last block may find a header before that block's end. */
    s->skipped += found > s->offset ? found - s->offset : 0;
    s->offset = found;
    s->search_from = found;
    return found < s->file->size;
}

int stream_scan_next(struct stream_scan *s, struct scanned_block *block)
{
    for (;;) {
        uint64_t size = 0;
        int place = place_at(s, s->offset, &block->header, &size);
        if (place < 0)
            return place;
        if (place == PLACE_END)
            return 0;
        if (place == PLACE_FRAME) {
            /* Its length has no checksum: if it is wrong, the search begins right behind it. */
            s->search_from = s->offset + 8;
            s->offset += size;
            continue;
        }
        bool torn = place == PLACE_TORN;
        if (place == PLACE_BLOCK) {
            uint64_t payload = s->offset + size;
            s->search_from = payload;
            if (block->header.stored_bytes <= s->file->size - payload) {
                block->offset = s->offset;
                block->payload = payload;
                s->offset = payload + block->header.stored_bytes;
                return 1;
            }
            torn = true;
            s->torn_header_read = true;
            s->torn_header = block->header;
        }
        int more = resynchronise(s, torn);
        if (more <= 0)
            return more;
        s->torn_header_read = false;
    }
}
