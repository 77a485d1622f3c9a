/* SPDX-License-Identifier: Apache-2.0 */
/* Streams of spans that grow side by side are read again as they were put, in memory and through a
 * file; bytes of one that somebody cut, or added to, are not. */
#include "unit_test.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file_at.h"
#include "base/span_stream.h"
#include "error.h"

#define STREAMS   3
#define SPANS     40000
#define CUT_SPANS 60
#define BEGIN     5 /* where the stream lies in the file */

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
            span_put(&spool, &streams[of], &spans[of], kinds[of]);
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
    unsigned count = 0;
    int fd = file_unnamed();
    assert_int_equal(file_write_at(fd, BEGIN, bytes, length), 0);
    span_reader_init_stored(&reader, &(struct stored_spans){fd, BEGIN, length, CUT_SPANS});
    while (next(&reader, 0) > 0)
        count++;
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(side_by_side), cmocka_unit_test(cut)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
