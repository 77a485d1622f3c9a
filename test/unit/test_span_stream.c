/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of spans that grow side by side are read again as they were put, in memory and through a
 * file; bytes of one that somebody cut, or added to, are not. */
#include "unit_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/span_stream.h"
#include "error.h"

#define STREAMS      3
#define SPANS        40000
#define CUT_SPANS    60
#define PACKED_BYTES 600000u

static const struct span_kind kinds[STREAMS] = {{6, 3}, {0, 0}, {3, 4}};

/* The next span of a stream: mostly much as the one before, at times anything. */
static void change(struct span *s, unsigned of, uint64_t *state)
{
    uint64_t random = random_of(state);
    s->begin_ns += random % 20000;
    s->end_ns = s->begin_ns + random_of(state) % 5000;
    for (unsigned i = 0; i < kinds[of].count; i++) {
        if (kinds[of].counts >> i & 1)
            s->numbers[i]++;
        if (random_of(state) % 16 == 0)
            s->numbers[i] = random_of(state) >> random_of(state) % 64;
    }
    if (random >> 54 == 0)
        *s = (struct span){.begin_ns = random, .end_ns = random + random_of(state)};
}

static int next(struct span_reader *r, unsigned of)
{
    return of == 0   ? span_next(r, kinds[0])
           : of == 1 ? span_next(r, kinds[1])
                     : span_next(r, kinds[2]);
}

static void side_by_side(void **context)
{
    (void)context;
    for (unsigned slots = 1; slots <= SPOOL_SLOTS; slots += SPOOL_SLOTS - 1) {
        struct spool spool;
        struct span_stream streams[STREAMS] = {0};
        struct span_reader readers[STREAMS];
        struct span spans[STREAMS] = {0};
        uint64_t states[STREAMS] = {1, 2, 3}, order = 4;
        spool_init(&spool, sizeof(struct byte_chunk));
        spool.usable = slots;
        for (unsigned i = 0; i < STREAMS * SPANS; i++) {
            unsigned of = random_of(&order) % STREAMS;
            change(&spans[of], of, &states[of]);
            assert_int_equal(span_put(&spool, &streams[of], &spans[of], kinds[of]), 0);
        }
        assert_int_equal(spool.fd >= 0, slots == 1);
        for (unsigned of = 0; of < STREAMS; of++) {
            span_reader_init(&readers[of], &spool, &streams[of]);
            spans[of] = (struct span){0};
            states[of] = of + 1;
        }
        for (unsigned left = STREAMS; left;) {
            unsigned of = random_of(&order) % STREAMS;
            uint64_t count = streams[of].count;
            if (count == UINT64_MAX)
                continue;
            streams[of].count = readers[of].left ? count : UINT64_MAX;
            left -= readers[of].left == 0;
            assert_int_equal(next(&readers[of], of), streams[of].count != UINT64_MAX);
            assert_false(readers[of].has_failed);
            if (streams[of].count == UINT64_MAX)
                continue;
            change(&spans[of], of, &states[of]);
            assert_memory_equal(&readers[of].span, &spans[of], sizeof spans[of]);
        }
        spool_release(&spool);
    }
}

/* Reads all of it; says whether it was as it should be. */
static bool is_whole(const uint8_t *bytes, size_t length)
{
    struct span_reader reader;
    struct packed_writer writer;
    struct packed packed;
    struct packed_cache *cache = calloc(1, sizeof *cache);
    unsigned count = 0;
    int fd = file_unnamed();
    assert_int_equal(packed_writer_init(&writer, fd, 0), 0);
    assert_int_equal(packed_put(&writer, bytes, length), 0);
    assert_int_equal(packed_end(&writer), 0);
    assert_int_equal(packed_open(&packed, fd, 0, length, writer.at), 0);
    packed_writer_release(&writer);
    assert_int_equal(packed_cache_init(cache), 0);
    packed.cache = cache;
    span_reader_init_packed(&reader, &(struct packed_spans){&packed, 0, length, CUT_SPANS});
    while (next(&reader, 0) > 0)
        count++;
    packed_release(&packed);
    packed_cache_release(cache);
    free(cache);
    close(fd);
    assert_true(count == CUT_SPANS || reader.has_failed);
    return !reader.has_failed;
}

static void cut(void **context)
{
    (void)context;
    uint8_t bytes[CUT_SPANS * SPAN_BYTES_MAX];
    struct span before = {0}, span = {0};
    uint64_t state = 5;
    size_t length = 0;
    for (unsigned i = 0; i < CUT_SPANS; i++) {
        change(&span, 0, &state);
        length += span_code(bytes + length, &before, &span, kinds[0]);
    }
    for (size_t i = 0; i < length; i++)
        assert_false(is_whole(bytes, i));
    assert_true(is_whole(bytes, length));
    bytes[length] = 0;
    assert_false(is_whole(bytes, length + 1));
    memset(bytes, 0xff, length); /* numbers without an end */
    assert_false(is_whole(bytes, length));
}

/* Any bytes of a stream, some of which compress and some do not; and sizes of pieces that somebody
 * changed. */
static void anywhere(void **context)
{
    (void)context;
    struct packed_writer writer;
    struct packed packed;
    struct packed_cache *cache = calloc(1, sizeof *cache);
    uint8_t *bytes = malloc(PACKED_BYTES), *got = malloc(PACKED_BYTES);
    uint64_t state = 9;
    int fd = file_unnamed();
    for (size_t i = 0; i < PACKED_BYTES; i++)
        bytes[i] = i / 50000 % 2 ? (uint8_t)random_of(&state) : (uint8_t)(i % 7);
    assert_int_equal(packed_writer_init(&writer, fd, 5), 0);
    for (size_t at = 0, size; at < PACKED_BYTES; at += size) {
        size = 1 + random_of(&state) % 40000;
        size = size < PACKED_BYTES - at ? size : PACKED_BYTES - at;
        assert_int_equal(packed_put(&writer, bytes + at, size), 0);
    }
    assert_int_equal(packed_end(&writer), 0);
    uint64_t stored = writer.at - 5;
    assert_in_range(stored, PACKED_BYTES / 2, PACKED_BYTES * 3 / 4);
    packed_writer_release(&writer);
    assert_int_equal(packed_open(&packed, fd, 5, PACKED_BYTES, stored), 0);
    assert_int_equal(packed_cache_init(cache), 0);
    packed.cache = cache;
    for (unsigned i = 0; i < 3000; i++) {
        uint64_t at = random_of(&state) % PACKED_BYTES;
        size_t size = random_of(&state) % (i % 100 ? 200 : 100000);
        size = size < PACKED_BYTES - at ? size : PACKED_BYTES - at;
        assert_int_equal(packed_read(&packed, at, got, size), 0);
        assert_memory_equal(got, bytes + at, size);
    }
    packed_release(&packed);
    packed_cache_release(cache);
    for (unsigned i = 0; i < 8; i++) {
        uint8_t changed = 0;
        uint64_t at = 5 + stored - 1 - 3 * i;
        assert_int_equal(file_read_at(fd, at, &changed, 1), 1);
        changed ^= 0x40;
        assert_int_equal(file_write_at(fd, at, &changed, 1), 0);
        assert_int_equal(packed_open(&packed, fd, 5, PACKED_BYTES, stored), GPUPROF_DAMAGED);
        packed_release(&packed);
        changed ^= 0x40;
        assert_int_equal(file_write_at(fd, at, &changed, 1), 0);
    }
    assert_int_equal(packed_open(&packed, fd, 5, UINT64_MAX, stored), GPUPROF_DAMAGED);
    packed_release(&packed);
    free(cache);
    free(bytes);
    free(got);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(side_by_side), cmocka_unit_test(cut),
                                       cmocka_unit_test(anywhere)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
