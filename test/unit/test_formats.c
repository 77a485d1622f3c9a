/* SPDX-License-Identifier: Apache-2.0 */
/* Round trips of columns, records, blocks and headers with random content. */
#include "unit_test.h"

#include "api/api.h"
#include "block.h"
#include "block_layout.h"
#include "bytes.h"
#include "column.h"
#include "crc32c.h"
#include "error.h"
#include "record.h"
#include "stream.h"
#include "zframe.h"

#define RECORDS 700

/* Value `i`, one after another, of what needs no lengths. */
static uint64_t value_at(struct column_cursor *c, size_t i)
{
    if (c->encoding == COLUMN_CONST)
        return c->value;
    if (i % COLUMN_AHEAD == 0)
        column_look_ahead(c);
    return c->ahead[i % COLUMN_AHEAD];
}

/* None is left: looking further ahead touches nothing. */
static void assert_is_read(struct column_cursor *c)
{
    c->ahead = NULL;
    if (c->encoding != COLUMN_CONST)
        column_look_ahead(c);
}

static void column_trip(const uint64_t *values, size_t count, enum column_hint hint)
{
    uint64_t scratch[300];
    uint8_t data[8 * 300 + 3000];
    struct byte_writer w = byte_writer(data, column_bytes_max(count));
    column_put(&w, values, scratch, count, hint);
    assert_false(w.failed);
    struct byte_reader r = byte_reader(data, w.length);
    struct column_cursor c;
    assert_int_equal(column_open(&c, &r, count), 0);
    assert_int_equal(r.position, w.length);
    uint64_t ahead[COLUMN_AHEAD];
    c.ahead = ahead;
    for (size_t i = 0; i < count; i++)
        assert_true(value_at(&c, i) == values[i]);
    assert_is_read(&c);
    for (size_t cut = 0; cut < w.length; cut++) {
        struct byte_reader shorter = byte_reader(data, cut);
        assert_int_equal(column_open(&c, &shorter, count), GPUPROF_DAMAGED);
    }
}

static void test_columns(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (unsigned round = 0; round < 3000; round++) {
        uint64_t values[300];
        size_t count = 1 + random_of(&seed) % 300;
        unsigned kind = (unsigned)(random_of(&seed) % 6);
        uint64_t value = random_of(&seed) >> (random_of(&seed) % 64);
        unsigned shift = (unsigned)(random_of(&seed) % 64);
        for (size_t i = 0; i < count; i++) {
            switch (kind) {
            case 0: break;
            case 1: value = random_of(&seed) >> shift; break;
            case 2: value += random_of(&seed) % 1000; break;
            case 3: value = (random_of(&seed) % 7) << shift; break;
            case 4: value += (random_of(&seed) % 2000) - 1000; break;
            default: value = i % 2 ? UINT64_MAX : 0; break;
            }
            values[i] = value;
        }
        column_trip(values, count, (enum column_hint)(random_of(&seed) % 3));
    }
}

/* Begins are told from ends where that is shorter, and read as they were in any case. */
static void test_begins(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (unsigned round = 0; round < 1000; round++) {
        uint64_t begins[300], lengths[300], scratch[300];
        uint8_t data[8 * 300 + 100];
        size_t count = 2 + random_of(&seed) % 299;
        unsigned kind = round % 3;
        uint64_t begin = random_of(&seed) >> random_of(&seed) % 64;
        for (size_t i = 0; i < count; i++) {
            begins[i] = begin;
            lengths[i] = kind == 0 ? random_of(&seed) >> 32 : 10000 + random_of(&seed) % 10000;
            begin +=
                kind == 1 ? lengths[i] + random_of(&seed) % 500 - 100 : random_of(&seed) % 1000;
        }
        struct byte_writer w = byte_writer(data, column_bytes_max(count));
        column_put_begins(&w, begins, lengths, scratch, count);
        assert_false(w.failed);
        assert_true((data[0] == COLUMN_FOLLOW) == (kind == 1));
        struct byte_reader r = byte_reader(data, w.length);
        struct column_cursor c;
        assert_int_equal(column_open_begins(&c, &r, count), 0);
        assert_int_equal(r.position, w.length);
        uint64_t ahead[COLUMN_AHEAD];
        c.ahead = ahead;
        for (size_t i = 0; i < count; i++) {
            uint64_t value = value_at(&c, i);
            if (c.encoding == COLUMN_FOLLOW && i % COLUMN_AHEAD == 0) {
                column_follow(&c, lengths + i, 0);
                value = c.ahead[0];
            }
            assert_true(value == begins[i]);
        }
        assert_is_read(&c);
        r = byte_reader(data, w.length);
        assert_int_equal(column_open(&c, &r, count), kind == 1 ? GPUPROF_DAMAGED : 0);
        for (size_t cut = 0; cut < w.length; cut++) {
            r = byte_reader(data, cut);
            assert_int_equal(column_open_begins(&c, &r, count), GPUPROF_DAMAGED);
        }
    }
}

#define MAPPED 200

/* A column that is a function of one before it; and maps from what is no such column. */
static void test_maps(void **state)
{
    (void)state;
    uint64_t values[MAPPED], mapped[MAPPED], scratch[MAPPED], seed = 5;
    uint8_t data[1 << 14];
    for (size_t i = 0; i < MAPPED; i++) {
        values[i] = random_of(&seed) % 20 * 1000;
        mapped[i] = values[i] % 7 << 40;
    }
    struct byte_writer w = byte_writer(data, sizeof data);
    column_put(&w, values, scratch, MAPPED, COLUMN_ANY);
    const uint8_t *plane = column_map_plane(data, w.length, MAPPED);
    assert_ptr_equal(plane, data + w.length - MAPPED);
    size_t at = w.length;
    mapped[MAPPED - 1]++;
    assert_false(column_put_map(&w, mapped, MAPPED, 0, plane));
    assert_int_equal(w.length, at);
    mapped[MAPPED - 1]--;
    assert_true(column_put_map(&w, mapped, MAPPED, 0, plane));

    struct byte_reader r = byte_reader(data, w.length);
    struct column_cursor shape[2], c;
    assert_int_equal(column_open_argument(&shape[0], &r, MAPPED, shape, 0), 0);
    assert_int_equal(column_open_argument(&shape[1], &r, MAPPED, shape, 1), 0);
    assert_int_equal(r.position, w.length);
    uint64_t ahead[2][COLUMN_AHEAD];
    shape[0].ahead = ahead[0];
    shape[1].ahead = ahead[1];
    for (size_t i = 0; i < MAPPED; i++) {
        assert_true(value_at(&shape[0], i) == values[i]);
        assert_true(value_at(&shape[1], i) == mapped[i]);
    }
    assert_is_read(&shape[1]);
    for (size_t cut = at; cut < w.length; cut++) {
        r = byte_reader(data + at, cut - at);
        assert_int_equal(column_open_argument(&c, &r, MAPPED, shape, 1), GPUPROF_DAMAGED);
    }
    /* From itself, from another map, from two planes, in no shape, without entries. */
    for (unsigned bad = 0; bad < 5; bad++) {
        data[at + 1] = bad == 1;
        data[at + 2] = bad == 4 ? 0 : data[at + 2];
        shape[0].width = bad == 2 ? 2 : 1;
        r = byte_reader(data + at, w.length - at);
        int error = bad == 3 ? column_open(&c, &r, MAPPED)
                             : column_open_argument(&c, &r, MAPPED, shape, bad == 0 ? 0 : 2);
        assert_int_equal(error, GPUPROF_DAMAGED);
        r = byte_reader(data + at, w.length - at);
        assert_int_equal(column_open_begins(&c, &r, MAPPED), GPUPROF_DAMAGED);
    }
    /* Wide planes are no indexes. */
    for (size_t i = 0; i < MAPPED; i++)
        values[i] = random_of(&seed);
    w = byte_writer(data, sizeof data);
    column_put(&w, values, scratch, MAPPED, COLUMN_ANY);
    assert_null(column_map_plane(data, w.length, MAPPED));
}

/* A random record with `text` as its place for bytes. */
static struct record random_record(uint64_t *seed, uint8_t *text)
{
    struct record r = {.type = (uint8_t)(1 + random_of(seed) % 20),
                       .flags = (uint8_t)(random_of(seed) % 8),
                       .code = (uint16_t)(random_of(seed) % 40),
                       .arg_count = (uint8_t)(random_of(seed) % (RECORD_ARGS_MAX + 1)),
                       .result = (int32_t)(random_of(seed) % 5 ? 0 : random_of(seed)),
                       .begin = 1000000 + random_of(seed) % 1000000,
                       .duration = random_of(seed) % 10000};
    if (random_of(seed) % 3 == 0)
        r.correlation = (uint32_t)random_of(seed);
    if (random_of(seed) % 4 == 0) {
        r.stack_id = (uint32_t)random_of(seed);
        r.weight = (uint32_t)random_of(seed);
    }
    for (unsigned i = 0; i < r.arg_count; i++)
        r.args[i] = random_of(seed) >> (random_of(seed) % 64);
    if (random_of(seed) % 5 == 0) {
        r.byte_count = (uint32_t)(1 + random_of(seed) % 60);
        for (uint32_t i = 0; i < r.byte_count; i++)
            text[i] = (uint8_t)random_of(seed);
        r.bytes = text;
    }
    return r;
}

static void assert_same(const struct record *a, const struct record *b)
{
    assert_int_equal(a->type, b->type);
    assert_int_equal(a->flags & 7, b->flags & 7);
    assert_int_equal(a->code, b->code);
    assert_int_equal(a->arg_count, b->arg_count);
    assert_int_equal(a->result, b->result);
    assert_int_equal(a->correlation, b->correlation);
    assert_true(a->begin == b->begin);
    assert_true(a->duration == b->duration);
    if (a->stack_id || a->weight > 1) {
        assert_int_equal(a->stack_id, b->stack_id);
        assert_int_equal(a->weight, b->weight);
    }
    for (unsigned i = 0; i < a->arg_count; i++)
        assert_true(a->args[i] == b->args[i]);
    assert_int_equal(a->byte_count, b->byte_count);
    if (a->byte_count)
        assert_memory_equal(a->bytes, b->bytes, a->byte_count);
}

static void test_records(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (unsigned round = 0; round < 20000; round++) {
        uint8_t text[64];
        uint8_t raw[8 * 64];
        struct record r = random_record(&seed, text);
        struct record back;
        int size = record_write(&r, raw, sizeof raw);
        assert_true(size > 0 && size % 8 == 0);
        assert_int_equal(record_parse(raw, (size_t)size, &back), size);
        assert_same(&r, &back);
        assert_int_equal(record_parse(raw, (size_t)size - 8, &back), GPUPROF_TRUNCATED);
        assert_int_equal(record_write(&r, raw, (size_t)size - 1), GPUPROF_LIMIT);
        /* Whatever a byte is changed to: a record within its bounds, or an error. */
        raw[random_of(&seed) % (size_t)size] ^= (uint8_t)(1 + random_of(&seed) % 255);
        int changed = record_parse(raw, (size_t)size, &back);
        assert_true(changed < 0 || (changed <= size && back.byte_count <= (unsigned)changed));
    }
}

struct kept {
    struct record record;
    uint8_t text[64];
    unsigned order;
};

static int compare_kept(const void *left, const void *right)
{
    const struct kept *a = left;
    const struct kept *b = right;
    if (a->record.begin != b->record.begin)
        return a->record.begin < b->record.begin ? -1 : 1;
    bool a_call = a->record.type == RECORD_CALL;
    bool b_call = b->record.type == RECORD_CALL;
    if (a_call != b_call)
        return b_call ? -1 : 1;
    if (a_call && a->record.duration != b->record.duration)
        return a->record.duration > b->record.duration ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static void block_trip(uint64_t *seed, unsigned count)
{
    static struct kept kept[RECORDS];
    static uint8_t raw[RECORDS * 8 * 40];
    static struct block_encoder encoder;
    static const struct clock_scale scale = {.mult = 1ull << CLOCK_SCALE_SHIFT};
    size_t at = 0;
    block_encoder_reset(&encoder);
    unsigned added = 0;
    for (; added < count; added++) {
        kept[added].record = random_record(seed, kept[added].text);
        kept[added].record.type = (uint8_t)(1 + random_of(seed) % 2);
        kept[added].record.code %= 4;
        if (count % 2) /* many with one begin, or one duration, too */
            kept[added].record.begin %= 50, kept[added].record.duration %= 3;
        kept[added].order = added;
        int size = record_write(&kept[added].record, raw + at, sizeof raw - at);
        assert_true(size > 0);
        if (!block_encoder_add(&encoder, raw + at, (size_t)size))
            break;
        at += (size_t)size;
    }
    size_t capacity = block_encode_bytes_max(&encoder);
    uint8_t *payload = malloc(capacity);
    struct block_header h = {0};
    assert_int_equal(block_encode(&encoder, &scale, payload, capacity, &h), 0);
    assert_int_equal(h.record_count, added);
    for (unsigned i = 0; i < added; i++)
        kept[i].record.bytes = kept[i].record.byte_count ? kept[i].text : NULL;
    qsort(kept, added, sizeof kept[0], compare_kept);
    for (unsigned i = 0; i < added; i++)
        kept[i].record.bytes = kept[i].record.byte_count ? kept[i].text : NULL;
    assert_true(h.min_ns == kept[0].record.begin);
    struct block_decoder decoder;
    struct record r;
    assert_int_equal(block_decoder_init(&decoder, payload, h.payload_bytes, added), 0);
    for (unsigned i = 0; i < added; i++) {
        assert_int_equal(block_decoder_next(&decoder, &r), 1);
        assert_same(&kept[i].record, &r);
    }
    assert_int_equal(block_decoder_next(&decoder, &r), 0);
    block_decoder_release(&decoder);
    /* Damage that a checksum would have found must not lead anywhere bad either. */
    for (unsigned i = 0; i < 20; i++) {
        size_t place = random_of(seed) % h.payload_bytes;
        payload[place] ^= (uint8_t)(1 + random_of(seed) % 255);
        size_t length = i % 4 ? h.payload_bytes : random_of(seed) % h.payload_bytes;
        if (block_decoder_init(&decoder, payload, length, added) == 0) {
            while (block_decoder_next(&decoder, &r) > 0)
                ;
            block_decoder_release(&decoder);
        }
    }
    free(payload);
}

static void test_blocks(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (unsigned round = 0; round < 60; round++)
        block_trip(&seed, 1 + (unsigned)(random_of(&seed) % RECORDS));
}

/* What a device runs: one after another, a kernel's numbers those of its name, ids in order. */
static void test_device_blocks(void **state)
{
    (void)state;
    static uint64_t raw[RECORDS][RECORD_HEAD_WORDS + 3];
    static struct block_encoder encoder;
    static const struct clock_scale scale = {.mult = 1ull << CLOCK_SCALE_SHIFT};
    static uint8_t payload[RECORDS * 100];
    struct block_header h = {0};
    uint64_t seed = 6, now = 1ull << 50;
    block_encoder_reset(&encoder);
    for (uint64_t i = 0; i < RECORDS; i++) {
        uint64_t name = random_of(&seed) % 60;
        uint64_t words[] = {record_word0(RECORD_KERNEL, 0, RECORD_HEAD_WORDS + 3, 0, 3),
                            now,
                            random_of(&seed) % 30000,
                            (70000 + 2 * i) << 32,
                            name,
                            1000 * (name % 9),
                            random_of(&seed)};
        memcpy(raw[i], words, sizeof words);
        now += words[2] + random_of(&seed) % 1000;
        assert_true(block_encoder_add(&encoder, (const uint8_t *)raw[i], sizeof raw[i]));
    }
    assert_int_equal(block_encode(&encoder, &scale, payload, sizeof payload, &h), 0);
    struct block_decoder d;
    struct record r;
    assert_int_equal(block_decoder_init(&d, payload, h.payload_bytes, RECORDS), 0);
    assert_int_equal(d.columns[BLOCK_BEGIN].encoding, COLUMN_FOLLOW);
    assert_int_equal(d.columns[BLOCK_CORRELATION].encoding, COLUMN_STEP);
    assert_int_equal(d.columns[BLOCK_CORRELATION].width, 1);
    assert_int_equal(d.columns[BLOCK_COMMON_COLUMNS + 1].encoding, COLUMN_MAP);
    for (unsigned i = 0; i < RECORDS; i++) {
        assert_int_equal(block_decoder_next(&d, &r), 1);
        assert_true(r.begin == raw[i][1] && r.duration == raw[i][2]);
        assert_true(r.correlation == raw[i][3] >> 32);
        assert_memory_equal(r.args, raw[i] + RECORD_HEAD_WORDS, 3 * sizeof(uint64_t));
    }
    assert_int_equal(block_decoder_next(&d, &r), 0);
    block_decoder_release(&d);
}

static void test_block_headers(void **state)
{
    (void)state;
    struct block_header h, back;
    uint8_t data[BLOCK_HEADER_BYTES];
    memset(&h, 0, sizeof h); /* the padding, too */
    memset(&back, 0, sizeof back);
    h.thread = 3;
    h.record_count = 17;
    h.sequence = 5;
    h.min_ns = 10;
    h.max_ns = 1ull << 60;
    h.position_begin = 8;
    h.position_end = 800;
    h.payload_bytes = 1000;
    h.stored_bytes = 500;
    h.stored_crc = 0xdeadbeef;
    h.types = block_type_bit(1) | block_type_bit(200);
    assert_true(h.types == (UINT64_C(1) << 63 | 2));
    block_header_write(&h, data);
    assert_int_equal(block_header_read(&back, data, sizeof data), BLOCK_HEADER_BYTES);
    assert_memory_equal(&h, &back, sizeof h);
    for (size_t length = 0; length < sizeof data; length++)
        assert_int_equal(block_header_read(&back, data, length), GPUPROF_TRUNCATED);
    for (size_t i = 0; i < sizeof data; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            data[i] ^= (uint8_t)(1u << bit);
            assert_true(block_header_read(&back, data, sizeof data) <= 0);
            data[i] ^= (uint8_t)(1u << bit);
        }
    }
}

static void test_stream_headers(void **state)
{
    (void)state;
    struct stream_header h = {.pid = 12,
                              .parent_pid = 3,
                              .api_crc = 77,
                              .start_time = 99,
                              .scale = {.source = 1, .ticks_zero = 5, .mult = 6},
                              .host = "node",
                              .live_path = "/dev/shm/gpuprof.x.live"};
    struct stream_header back = {0};
    uint8_t data[STREAM_HEADER_BYTES_MAX];
    int size = stream_header_write(&h, data, sizeof data);
    assert_true(size > 0);
    assert_int_equal(stream_header_read(&back, data, sizeof data), size);
    assert_string_equal(back.host, h.host);
    assert_string_equal(back.live_path, h.live_path);
    assert_int_equal(back.pid, 12);
    assert_true(back.scale.mult == 6 && back.scale.ticks_zero == 5 && back.start_time == 99);
    for (int length = 0; length < size; length++)
        assert_true(stream_header_read(&back, data, (size_t)length) < 0);
    for (int i = 0; i < size; i++) {
        data[i] ^= 0x41;
        assert_true(stream_header_read(&back, data, sizeof data) < 0);
        data[i] ^= 0x41;
    }
}

static void test_crc32c(void **state)
{
    (void)state;
    assert_int_equal(crc32c(0, "123456789", 9), 0xE3069283);
    assert_int_equal(crc32c(crc32c(0, "1234", 4), "56789", 5), 0xE3069283);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_crc32c),        cmocka_unit_test(test_columns),
        cmocka_unit_test(test_records),       cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_block_headers), cmocka_unit_test(test_stream_headers),
        cmocka_unit_test(test_begins),        cmocka_unit_test(test_maps),
        cmocka_unit_test(test_device_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
