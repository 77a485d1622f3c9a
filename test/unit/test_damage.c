/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small recording, cut at every byte, with every byte changed, with bytes taken out and put in:
 * the reader must stay within its memory (run it with SANITIZE=address,undefined), give only events
 * that were recorded, every block that is whole, and say that something is missing if it is.
 */
#include "unit_test.h"

#include "api/api.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "stream_builder.h"

#define BLOCKS      8
#define BLOCK_CALLS 20

struct reading {
    int opened;
    int verdict;
    unsigned calls;
    unsigned whole_blocks;
    struct losses losses;
};

static struct stream_builder builder;
static char folder[300];
static char path[400];

static void make(void)
{
    builder_init(&builder, 0);
    builder.header.api_crc =
        0; /* not this build's table, of which each reading would have a copy */
    builder_text(&builder, RECORD_API, 0, "cudaMalloc|runtime|alloc|address:ptr,bytes:bytes");
    builder_flush(&builder);
    for (uint64_t i = 0; i < BLOCKS * BLOCK_CALLS; i++) {
        uint64_t args[2] = {i, i * 7919};
        builder_call(&builder, (uint32_t)(1 + i / BLOCK_CALLS % 3), 0, 1000 + 100 * i, 50, 0, 2,
                     args);
        if (i % BLOCK_CALLS == BLOCK_CALLS - 1)
            builder_flush(&builder);
    }
    builder_end(&builder);
    builder_flush(&builder);
}

/* Reads a file of these bytes; every call that comes out must be one of the recorded ones. */
static struct reading read_bytes(const uint8_t *data, size_t length)
{
    struct reading r = {0};
    struct recording rec;
    struct recording_options options = {.keep_live = true};
    char *paths[] = {folder};
    unsigned of_block[BLOCKS] = {0};
    builder_write_file(path, data, length);
    r.opened = recording_open(&rec, paths, 1, &options);
    if (r.opened == EXIT_OK) {
        r.losses = rec.processes[0]->losses;
        struct timeline *t =
            timeline_create(&rec, &r.losses, OPEN_BYTES_MAX, &(struct timeline_scope){0});
        struct event event;
        int more;
        while ((more = timeline_next(t, &event)) > 0) {
            if (event.record->type != RECORD_CALL)
                continue;
            uint64_t i = event.record->args[0];
            assert_true(i < BLOCKS * BLOCK_CALLS);
            assert_true(event.record->args[1] == i * 7919);
            assert_true(event.record->begin == 1000 + 100 * i);
            of_block[i / BLOCK_CALLS]++;
            r.calls++;
        }
        assert_int_equal(more, 0);
        timeline_free(t);
        r.verdict = recording_verdict(&rec, &r.losses, false, false);
    }
    recording_release(&rec);
    for (unsigned i = 0; i < BLOCKS; i++) {
        assert_true(of_block[i] == 0 || of_block[i] == BLOCK_CALLS);
        r.whole_blocks += of_block[i] != 0;
    }
    return r;
}

/* Blocks of calls that lie wholly before `length`. */
static unsigned blocks_before(size_t length)
{
    unsigned count = 0;
    for (size_t i = 1; i <= BLOCKS; i++)
        count += builder.block_offsets[i + 1] <= length;
    return count;
}

static void test_whole(void **state)
{
    (void)state;
    struct reading r = read_bytes(builder.data, builder.length);
    assert_int_equal(r.opened, EXIT_OK);
    assert_int_equal(r.verdict, EXIT_OK);
    assert_int_equal(r.whole_blocks, BLOCKS);
}

static void test_truncated(void **state)
{
    (void)state;
    for (size_t length = 0; length < builder.length; length++) {
        struct reading r = read_bytes(builder.data, length);
        if (length < builder.block_offsets[0]) {
            assert_int_equal(r.opened, EXIT_DAMAGED);
            continue;
        }
        assert_int_equal(r.opened, EXIT_OK);
        assert_int_equal(r.whole_blocks, blocks_before(length));
        bool between = false;
        for (size_t i = 0; i < builder.block_count; i++)
            between |= builder.block_offsets[i] == length;
        /* At a block's end it looks like a process that was killed: said, but no damage. */
        assert_int_equal(r.verdict, between ? EXIT_OK : EXIT_DAMAGED);
        assert_int_equal(r.losses.not_ended, 1);
    }
}

static void test_changed(void **state)
{
    (void)state;
    uint8_t *data = malloc(builder.length);
    memcpy(data, builder.data, builder.length);
    for (size_t i = 0; i < builder.length; i++) {
        data[i] ^= (uint8_t)(1u << (i % 8));
        struct reading r = read_bytes(data, builder.length);
        if (i < builder.block_offsets[0]) {
            assert_int_equal(r.opened, EXIT_DAMAGED);
        } else {
            assert_int_equal(r.opened, EXIT_OK);
            assert_int_equal(r.verdict, EXIT_DAMAGED);
            bool calls_hit = i >= builder.block_offsets[1] && i < builder.block_offsets[BLOCKS + 1];
            assert_int_equal(r.whole_blocks, BLOCKS - calls_hit);
        }
        data[i] = builder.data[i];
    }
    free(data);
}

/* Bytes missing from or added to one block spoil that block alone. */
static void test_shifted(void **state)
{
    (void)state;
    uint8_t *data = malloc(builder.length + 64);
    for (size_t at = builder.block_offsets[1]; at < builder.block_offsets[BLOCKS + 1]; at += 3) {
        size_t removed = 1 + at % 40;
        if (removed > builder.length - at)
            break;
        memcpy(data, builder.data, at);
        memcpy(data + at, builder.data + at + removed, builder.length - at - removed);
        struct reading r = read_bytes(data, builder.length - removed);
        assert_int_equal(r.verdict, EXIT_DAMAGED);
        assert_true(r.whole_blocks >= BLOCKS - 2);
        memcpy(data, builder.data, at);
        memset(data + at, 0x5b, removed);
        memcpy(data + at + removed, builder.data + at, builder.length - at);
        r = read_bytes(data, builder.length + removed);
        assert_int_equal(r.verdict, EXIT_DAMAGED);
        assert_true(r.whole_blocks >= BLOCKS - 1);
    }
    free(data);
}

/* Whole blocks taken out are seen in the sequence numbers and positions. */
static void test_missing_blocks(void **state)
{
    (void)state;
    uint8_t *data = malloc(builder.length);
    for (size_t i = 1; i <= BLOCKS; i++) {
        size_t from = builder.block_offsets[i];
        size_t to = builder.block_offsets[i + 1];
        memcpy(data, builder.data, from);
        memcpy(data + from, builder.data + to, builder.length - to);
        struct reading r = read_bytes(data, builder.length - (to - from));
        assert_int_equal(r.whole_blocks, BLOCKS - 1);
        assert_int_equal(r.losses.missing_blocks, 1);
        assert_int_equal(r.verdict, EXIT_DAMAGED);
    }
    free(data);
}

static void test_noise(void **state)
{
    (void)state;
    uint64_t seed = 11;
    uint8_t *data = malloc(builder.length);
    for (unsigned round = 0; round < 100; round++) {
        memcpy(data, builder.data, builder.length);
        for (unsigned i = 0; i < 1 + round % 30; i++) {
            size_t at = builder.block_offsets[0] +
                        random_of(&seed) % (builder.length - builder.block_offsets[0]);
            data[at] = (uint8_t)random_of(&seed);
        }
        struct reading r = read_bytes(data, builder.length);
        assert_int_equal(r.opened, EXIT_OK);
    }
    free(data);
}

static int setup(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    make();
    /* The lines that the reader says about each damaged file are not what is looked at here. */
    return freopen("/dev/null", "w", stderr) ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    builder_release(&builder);
    scratch_remove(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),   cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_changed), cmocka_unit_test(test_shifted),
        cmocka_unit_test(test_noise),   cmocka_unit_test(test_missing_blocks),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
