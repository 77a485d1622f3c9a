/* SPDX-License-Identifier: Apache-2.0 */
/* From chunks to blocks, into a sink that is memory: what comes there is a stream like a file's. */
#include "unit_test.h"

#include <errno.h>

#include "base/futex.h"
#include "file/stream_file.h"
#include "record/pool.h"
#include "record/thread.h"
#include "store/block_sink.h"
#include "store/compress.h"
#include "store/seal.h"
#include "stream_builder.h"

#define CHUNK_BYTES LIVE_CHUNK_BYTES_MIN
#define CHUNK_COUNT 8
#define SINK_BYTES  (1u << 20)
#define SECOND_NS   1000000000u

struct state gp;
struct fork_page fork_page;
__thread struct thread this_thread = THREAD_BLANK;

/* The sums of what it costs are not stored here. */
bool thread_append(struct thread *t, const struct record *r)
{
    (void)t, (void)r;
    return false;
}

static _Alignas(4096) uint8_t memory[LIVE_HEAD_BYTES + CHUNK_COUNT * CHUNK_BYTES];
static struct chunk_owner owners[CHUNK_COUNT];
static struct sealer *sealer;
static struct thread writer;

static struct {
    struct block_sink sink;
    uint8_t data[SINK_BYTES];
    size_t bytes;
    unsigned block_count, block_max, end_count;
    uint64_t counters[COUNTER_COUNT];
} kept;

static bool keep(struct block_sink *s, const uint8_t *block, size_t bytes)
{
    assert_ptr_equal(s, &kept.sink);
    errno = ENOSPC;
    if (kept.block_count == kept.block_max || bytes > SINK_BYTES - kept.bytes)
        return false;
    memcpy(kept.data + kept.bytes, block, bytes);
    kept.bytes += bytes;
    kept.block_count++;
    return true;
}

static void keep_end(struct block_sink *s, const uint64_t counters[COUNTER_COUNT])
{
    assert_ptr_equal(s, &kept.sink);
    memcpy(kept.counters, counters, sizeof kept.counters);
    kept.end_count++;
}

static void begin(unsigned block_max)
{
    struct stream_builder b;
    memset(&gp, 0, sizeof gp);
    memset(memory, 0, sizeof memory);
    memset(owners, 0, sizeof owners);
    memset(&kept, 0, sizeof kept);
    settings_init(&gp.settings);
    builder_init(&b, 1);
    gp.header = b.header;
    builder_release(&b);
    gp.counters = (_Atomic uint64_t *)(void *)(memory + LIVE_OFFSET_COUNTERS);
    gp.pool.base = memory;
    gp.pool.owners = owners;
    gp.pool.chunk_bytes = CHUNK_BYTES;
    gp.pool.chunk_max = gp.pool.shared_max = gp.pool.allocated = gp.pool.free_count = CHUNK_COUNT;
    kept.sink = (struct block_sink){.place = "memory", .append = keep, .end = keep_end};
    kept.block_max = block_max;
    kept.bytes = (size_t)stream_header_write(&gp.header, kept.data, SINK_BYTES);
    compress_start();
    sealer = seal_create(&kept.sink);
    assert_non_null(sealer);
    writer = (struct thread)THREAD_BLANK;
    seal_attach(sealer, &writer);
}

/* Steps, `first` and those that follow, behind what there is in a chunk; how much there is then. */
static uint64_t add_steps(uint8_t *chunk, uint64_t used, uint64_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        struct record r = {
            .type = RECORD_STEP, .begin = 1000 + first + i, .arg_count = 1, .args = {first + i}};
        int bytes = record_write(&r, chunk + LIVE_CHUNK_HEAD_BYTES + used,
                                 CHUNK_BYTES - LIVE_CHUNK_HEAD_BYTES - used);
        assert_true(bytes > 0);
        used += (uint64_t)bytes;
    }
    chunk_set_u64(chunk, LIVE_CHUNK_COMMITTED, used);
    return used;
}

static uint8_t *take_chunk(uint32_t number, uint64_t position)
{
    uint8_t *chunk = pool_take(&gp.pool, number, thread_id(), position, true);
    assert_non_null(chunk);
    return chunk;
}

/* A thread of that number fills a chunk with steps and leaves it. */
static void record_steps(uint32_t number, uint64_t first, unsigned count)
{
    uint8_t *chunk = take_chunk(number, 0);
    pool_leave(&gp.pool, chunk, number, add_steps(chunk, 0, first, count));
}

#define THREADS 4
static uint64_t ends[THREADS]; /* of the blocks that were read: one begins where another ended */

/* The block that begins at kept.data + at: its steps follow `next`. Returns the next block's. */
static size_t read_block(struct zstandard *c, size_t at, uint64_t *next)
{
    static uint8_t payload[BLOCK_PAYLOAD_BYTES_MAX];
    struct block_header h;
    struct block_decoder d;
    struct record r;
    int head = block_header_read(&h, kept.data + at, kept.bytes - at);
    assert_int_equal(head, BLOCK_HEADER_BYTES);
    assert_true(h.stored_bytes <= kept.bytes - at - (size_t)head);
    assert_true(h.thread < THREADS);
    assert_int_equal(h.position_begin, ends[h.thread]);
    ends[h.thread] = h.position_end;
    assert_int_equal(payload_open(c, &h, kept.data + at + head, payload), 0);
    assert_int_equal(block_decoder_init(&d, payload, h.payload_bytes, h.record_count), 0);
    while (block_decoder_next(&d, &r) == 1) {
        assert_int_equal(r.type, RECORD_STEP);
        assert_int_equal(r.args[0], (*next)++);
    }
    assert_int_equal(d.index, h.record_count);
    block_decoder_release(&d);
    return at + (size_t)head + h.stored_bytes;
}

/* How many steps a reader finds in what was kept: 0 and those that follow, each once. */
static unsigned steps_kept(void)
{
    struct stream_header header;
    struct zstandard codec = {0};
    uint64_t next = 0;
    memset(ends, 0, sizeof ends);
    int head = stream_header_read(&header, kept.data, kept.bytes);
    assert_true(head > 0 && header.pid == gp.header.pid);
    for (size_t at = (size_t)head; at < kept.bytes;)
        at = read_block(&codec, at, &next);
    zstandard_release(&codec);
    return (unsigned)next;
}

static void what_comes_into_a_sink_is_a_stream(void **state)
{
    (void)state;
    begin(100);
    record_steps(1, 0, 200);
    record_steps(2, 200, 300);
    assert_true(seal_pass(sealer, &writer, true, SECOND_NS));
    assert_int_equal(kept.block_count, 2);
    assert_int_equal(steps_kept(), 500);
    assert_true(seal_pass(sealer, &writer, true, SECOND_NS)); /* nothing twice */
    record_steps(3, 500, 10);
    assert_true(seal_pass(sealer, &writer, false, SECOND_NS)); /* not due yet */
    assert_int_equal(kept.block_count, 2);
    assert_true(seal_pass(sealer, &writer, false, 3ull * SECOND_NS));
    assert_int_equal(steps_kept(), 510);
    seal_report_end(); /* it has not ended before its process */
    assert_int_equal(kept.end_count, 0);
    seal_free(sealer);
}

/* A thread takes its next chunk before it leaves the one before: a pass between the two stores the
 * begin of the next one with all of the other, and another one finds that other full and empty. */
static void a_chunk_that_was_stored_before_it_was_left_moves_no_begin(void **state)
{
    (void)state;
    begin(100);
    uint8_t *before = take_chunk(1, 0);
    uint64_t filled = add_steps(before, 0, 0, 50);
    uint8_t *next = take_chunk(1, filled);
    uint64_t used = add_steps(next, 0, 50, 1);
    assert_true(seal_pass(sealer, &writer, true, SECOND_NS));
    assert_int_equal(steps_kept(), 51);
    pool_leave(&gp.pool, before, 1, filled);
    used = add_steps(next, used, 51, 20);
    assert_true(seal_pass(sealer, &writer, true, 2ull * SECOND_NS));
    assert_int_equal(kept.block_count, 2);
    assert_int_equal(steps_kept(), 71);
    assert_int_equal(ends[1], filled + used);
    seal_free(sealer);
}

static void a_sink_that_takes_no_more_ends_the_recording(void **state)
{
    (void)state;
    begin(1);
    record_steps(1, 0, 200);
    record_steps(2, 200, 300);
    assert_false(seal_pass(sealer, &writer, true, SECOND_NS));
    assert_int_equal(steps_kept(), 200);
    assert_int_equal(gp.counters[COUNTER_ENDED], 1);
    seal_report_end();
    assert_int_equal(kept.end_count, 1);
    assert_int_equal(kept.counters[COUNTER_ENDED], 1);
    assert_int_equal(kept.counters[COUNTER_WRITE_LOST], 300); /* no live file has them */
    gp.pool.is_file = true;
    seal_report_end();
    assert_int_equal(kept.counters[COUNTER_WRITE_LOST], 0);
    seal_free(sealer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_comes_into_a_sink_is_a_stream),
        cmocka_unit_test(a_chunk_that_was_stored_before_it_was_left_moves_no_begin),
        cmocka_unit_test(a_sink_that_takes_no_more_ends_the_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
