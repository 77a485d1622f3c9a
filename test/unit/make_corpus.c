/* SPDX-License-Identifier: Apache-2.0 */
/*
 * make_corpus DIR: writes the malformed and odd files of test/corpus/ there. What each must lead to
 * stands in test/corpus/expected.txt. The files are kept in the tree, so that they stay what they
 * are when the library changes; this program says how they came about and makes new ones.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "block_layout.h"
#include "bytes.h"
#include "column.h"
#include "corpus.h"
#include "crc32c.h"

#define BLOCK_POSITION_BEGIN 44 /* in a block's header */

/* The good file with its block `index` (1 is the first of calls) changed by `change`. */
static void save_changed(const char *name, size_t index,
                         void (*change)(struct stream_builder *b, size_t at, size_t end))
{
    struct stream_builder b;
    corpus_begin(&b);
    corpus_add_calls(&b);
    builder_end(&b);
    builder_flush(&b);
    change(&b, b.block_offsets[index], b.block_offsets[index + 1]);
    corpus_save_bytes(name, b.data, b.length);
    builder_release(&b);
}

static void change_payload(struct stream_builder *b, size_t at, size_t end)
{
    (void)end;
    b->data[at + BLOCK_HEADER_BYTES + 12] ^= 1;
}

static void change_header(struct stream_builder *b, size_t at, size_t end)
{
    (void)end;
    b->data[at + 30] ^= 1;
}

static void cut_inside(struct stream_builder *b, size_t at, size_t end)
{
    b->length = (at + end) / 2;
}

static void take_out(struct stream_builder *b, size_t at, size_t end)
{
    memmove(b->data + at, b->data + end, b->length - end);
    b->length -= end - at;
}

static void put_in(struct stream_builder *b, size_t at, const void *data, size_t length)
{
    uint8_t *joined = malloc(b->length + length);
    if (!joined)
        abort();
    memcpy(joined, b->data, at);
    memcpy(joined + at, data, length);
    memcpy(joined + at + length, b->data + at, b->length - at);
    free(b->data);
    b->data = joined;
    b->length += length;
    b->capacity = b->length;
}

static void repeat(struct stream_builder *b, size_t at, size_t end)
{
    uint8_t block[4096];
    memcpy(block, b->data + at, end - at);
    put_in(b, end, block, end - at);
}

/* Says that its records begin before the end of those of the thread's block before it. */
static void overlap_before(struct stream_builder *b, size_t at, size_t end)
{
    uint8_t *header = b->data + at;
    (void)end;
    store_u64(header + BLOCK_POSITION_BEGIN, load_u64(header + BLOCK_POSITION_BEGIN) - 1);
    store_u32(header + BLOCK_HEADER_BYTES - 4, crc32c(0, header, BLOCK_HEADER_BYTES - 4));
}

static void add_frame(struct stream_builder *b, size_t at, size_t end)
{
    uint8_t frame[24] = {0};
    (void)end;
    store_u32(frame, 0x184D2A5Cu); /* a skippable frame of a later version */
    store_u32(frame + 4, sizeof frame - 8);
    put_in(b, at, frame, sizeof frame);
}

static void add_wild_frame(struct stream_builder *b, size_t at, size_t end)
{
    uint8_t frame[8];
    (void)end;
    store_u32(frame, 0x184D2A50u);
    store_u32(frame + 4, 0xfffffff0u);
    put_in(b, at, frame, sizeof frame);
}

/* A block whose checksums hold, with this payload and what the header says of it. */
static void append_block(struct stream_builder *b, struct block_header h, const void *payload,
                         size_t length)
{
    uint8_t stored[65536];
    uint8_t head[BLOCK_HEADER_BYTES];
    builder_flush(b);
    size_t size = ZSTD_compress(stored, sizeof stored, payload, length, 1);
    h.sequence = b->sequence++;
    h.min_ns = 500;
    h.max_ns = 900;
    h.stored_bytes = (uint32_t)size;
    h.stored_crc = crc32c(0, stored, size);
    block_header_write(&h, head);
    put_in(b, b->length, head, sizeof head);
    put_in(b, b->length, stored, size);
}

static void save_payloads(void)
{
    static uint8_t payload[1 << 20];
    static const struct {
        const char *name;
        const char *bytes;
        size_t length;
        uint32_t payload_bytes;
        uint32_t record_count;
    } cases[] = {
        {"payload-bomb.gpuprof", "", sizeof payload, 100, 5},
        {"payload-short.gpuprof", "", 100, 4u << 20, 5},
        {"payload-version.gpuprof", "\2\1\1", 100, 100, 1},
        {"payload-no-shapes.gpuprof", "\1\1\0", 100, 100, 1},
        {"payload-shape-sum.gpuprof", "\1\5\1\1\0\0\4", 100, 100, 5},
        {"payload-shape-args.gpuprof", "\1\5\1\1\0\377\5", 100, 100, 5},
        {"payload-count.gpuprof", "\1\5\1\1\0\0\5", 100, 100, 4},
        {"payload-columns.gpuprof", "\1\5\1\1\0\0\5\1\10", 12, 12, 5},
        {"payload-varint.gpuprof", "\1\377\377\377\377\377\377\377\377\377\377\377", 100, 100, 5},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct stream_builder b;
        memset(payload, 0, sizeof payload);
        memcpy(payload, cases[i].bytes, 12 < cases[i].length && cases[i].bytes[0] ? 12 : 0);
        corpus_begin(&b);
        struct block_header h = {.thread = 1,
                                 .record_count = cases[i].record_count,
                                 .payload_bytes = cases[i].payload_bytes};
        append_block(&b, h, payload, cases[i].length);
        corpus_add_calls(&b);
        corpus_save(&b, cases[i].name);
        builder_release(&b);
    }
}

/* Columns that lean on others: on such as they may, and on such as they may not. */
static void save_columns(void)
{
    enum { GOOD, FOLLOW_ELSEWHERE, MAP_FROM_ITSELF, MAP_ELSEWHERE, CASES };
    static const char *const names[] = {"columns-good.gpuprof", "columns-follow.gpuprof",
                                        "columns-map.gpuprof", "columns-map-elsewhere.gpuprof"};
    for (unsigned i = 0; i < CASES; i++) {
        struct stream_builder b;
        uint8_t payload[512];
        struct byte_writer w = byte_writer(payload, sizeof payload);
        put_bytes(&w, "\1\5\1\1\0\2\5", 7); /* 5 records of one shape, of 2 arguments */
        column_put_const(&w, 0);
        column_put_const(&w, 0);
        for (unsigned column = BLOCK_BEGIN; column <= BLOCK_DURATION; column++) {
            if (column == BLOCK_BEGIN || i == FOLLOW_ELSEWHERE) {
                put_u8(&w, COLUMN_FOLLOW);
                put_u64(&w, 500);
                put_bytes(&w, "\1\0\0\0\0\0", 6);
            } else {
                column_put_const(&w, 80);
            }
        }
        for (unsigned column = BLOCK_RESULT; column < BLOCK_TEXT_LENGTH; column++)
            column_put_const(&w, 0);
        column_put_const(&w, 0);
        for (unsigned arg = 0; arg < 2; arg++) {
            bool map = arg == 1 || i == MAP_ELSEWHERE;
            put_u8(&w, map ? COLUMN_MAP : COLUMN_DICT);
            put_bytes(&w, map ? i == MAP_FROM_ITSELF ? "\1\2" : "\0\2" : "\1\2", 2);
            put_u64(&w, 0x1000);
            put_u64(&w, 64);
            if (!map)
                put_bytes(&w, "\0\1\1\0\1", 5);
        }
        corpus_begin(&b);
        corpus_add_calls(&b);
        struct block_header h = {.thread = 3,
                                 .record_count = 5,
                                 .position_end = 5 * 8 * (RECORD_HEAD_WORDS + 2),
                                 .payload_bytes = (uint32_t)w.length};
        append_block(&b, h, payload, w.length);
        corpus_save(&b, names[i]);
        builder_release(&b);
    }
}

static void save_headers(void)
{
    struct stream_builder b;
    corpus_begin(&b);
    size_t header = b.block_offsets[0];
    corpus_save_bytes("empty.gpuprof", "", 0);
    corpus_save_bytes("text.gpuprof", "this is no recording\n", 21);
    corpus_save_bytes("header-only.gpuprof", b.data, header);
    corpus_save_bytes("header-torn.gpuprof", b.data, header / 2);
    b.data[16] = 2;
    corpus_save_bytes("version.gpuprof", b.data, b.length);
    b.data[16] = 1;
    b.data[40] ^= 1;
    corpus_save_bytes("header-crc.gpuprof", b.data, b.length);
    builder_release(&b);
}

static void save_live(const char *name, bool ends, void (*change)(struct live_builder *l))
{
    struct stream_builder b;
    struct live_builder l;
    char file[128];
    corpus_begin(&b);
    corpus_add_calls(&b);
    if (ends)
        builder_end(&b);
    builder_flush(&b);
    live_builder_init(&l, &b.header, LIVE_CHUNK_BYTES_MIN, 2);
    live_builder_chunk(&l, 0, LIVE_OWNED, 2, 44, b.positions[2]);
    for (uint64_t i = 0; i < 5; i++) {
        struct record r = {.type = RECORD_CALL,
                           .begin = 3000 + 100 * i,
                           .duration = 50,
                           .arg_count = 2,
                           .args = {i, 64}};
        live_builder_add(&l, 0, &r);
    }
    change(&l);
    snprintf(file, sizeof file, "%s.gpuprof", name);
    corpus_save_bytes(file, b.data, b.length);
    snprintf(file, sizeof file, "%s.live", name);
    corpus_save_bytes(file, l.data, LIVE_HEAD_BYTES + 1024); /* cut: the rest is zeros anyway */
    live_builder_release(&l);
    builder_release(&b);
}

static void live_as_is(struct live_builder *l)
{
    uint64_t args[2] = {9, 9};
    live_builder_open_call(l, 0, 0, 4000, 2, args);
}

static void live_without_open_call(struct live_builder *l)
{
    (void)l;
}

static void live_geometry(struct live_builder *l)
{
    store_u32(l->data + LIVE_OFFSET_CHUNK_BYTES, 0xfffffff0u);
}

static void live_committed(struct live_builder *l)
{
    store_u64(l->data + LIVE_HEAD_BYTES + LIVE_CHUNK_COMMITTED, UINT64_MAX);
}

static void live_record(struct live_builder *l)
{
    store_u64(l->data + LIVE_HEAD_BYTES + LIVE_CHUNK_HEAD_BYTES + 48 * 2, UINT64_MAX);
}

static void live_position(struct live_builder *l)
{
    store_u64(l->data + LIVE_HEAD_BYTES + LIVE_CHUNK_POSITION, 1ull << 60);
}

static void live_open(struct live_builder *l)
{
    uint64_t args[2] = {9, 9};
    live_builder_open_call(l, 0, 65535, 1, 2, args);
    uint64_t committed = load_u64(l->data + LIVE_HEAD_BYTES + LIVE_CHUNK_COMMITTED);
    store_u64(l->data + LIVE_HEAD_BYTES + LIVE_CHUNK_COMMITTED, committed | LIVE_OPEN_MASK);
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_corpus DIR\n");
        return 2;
    }
    corpus_folder = argv[1];
    struct stream_builder b;
    corpus_begin(&b);
    corpus_add_calls(&b);
    corpus_save(&b, "good.gpuprof");
    builder_release(&b);
    save_headers();
    save_changed("block-payload.gpuprof", 2, change_payload);
    save_changed("block-header.gpuprof", 2, change_header);
    save_changed("block-torn.gpuprof", 4, cut_inside);
    save_changed("block-missing.gpuprof", 2, take_out);
    save_changed("block-repeated.gpuprof", 2, repeat);
    save_changed("block-overlap.gpuprof", 2, overlap_before);
    save_changed("frame-unknown.gpuprof", 2, add_frame);
    save_changed("frame-wild.gpuprof", 2, add_wild_frame);
    save_payloads();
    save_columns();
    corpus_save_records();
    save_live("live-good", false, live_as_is);
    save_live("live-ended", true, live_without_open_call);
    save_live("live-geometry", false, live_geometry);
    save_live("live-committed", false, live_committed);
    save_live("live-record", false, live_record);
    save_live("live-position", false, live_position);
    save_live("live-open", false, live_open);
    return 0;
}
