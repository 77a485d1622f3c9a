/* SPDX-License-Identifier: Apache-2.0 */
/* What a live file adds to its stream file: nothing twice, nothing left out. */
#include "unit_test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "api/api.h"
#include "file/live_file.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "stream_builder.h"

#define CHUNK_BYTES LIVE_CHUNK_BYTES_MIN

struct seen {
    unsigned calls;
    unsigned open_calls;
    uint64_t arguments[4000]; /* how often each number came */
    struct losses losses;
    uint64_t last_open_ns;
    char thread_name[THREAD_NAME_BYTES_MAX + 1];
    uint32_t tid;
    int verdict;
    int verdict_strict;
};

static struct seen seen;

static void read_all(const char *path, bool keep_live)
{
    struct recording rec;
    struct recording_options options = {.keep_live = keep_live};
    char *paths[] = {(char *)path};
    memset(&seen, 0, sizeof seen);
    assert_int_equal(recording_open(&rec, paths, 1, &options), EXIT_OK);
    seen.losses = rec.processes[0]->losses;
    struct timeline *t =
        timeline_create(&rec, &seen.losses, OPEN_BYTES_MAX, &(struct timeline_scope){0});
    struct event event;
    uint64_t before = 0;
    int more;
    while ((more = timeline_next(t, &event)) > 0) {
        assert_true(event.begin_ns >= before);
        before = event.begin_ns;
        if (event.record->type != RECORD_CALL)
            continue;
        if (event.record->flags & RECORD_OPEN) {
            seen.open_calls++;
            seen.last_open_ns = event.end_ns - event.begin_ns;
        } else {
            seen.calls++;
            assert_true(event.record->args[0] < 4000);
            seen.arguments[event.record->args[0]]++;
        }
    }
    assert_int_equal(more, 0);
    timeline_free(t);
    struct thread *thread = thread_find(&rec.processes[0]->threads, 1);
    if (thread) {
        strcpy(seen.thread_name, thread->name);
        seen.tid = thread->tid;
    }
    seen.verdict = recording_verdict(&rec, &seen.losses, false, false);
    seen.verdict_strict = recording_verdict(&rec, &seen.losses, false, true);
    recording_release(&rec);
}

static void assert_each_once(unsigned count)
{
    assert_int_equal(seen.calls, count);
    for (unsigned i = 0; i < count; i++)
        assert_int_equal(seen.arguments[i], 1);
}

struct both {
    const char *folder;
    struct stream_builder b;
    struct live_builder l;
    char stream_path[400];
    char beside_path[400];
    char live_path[400];
};

static void both_init(struct both *w)
{
    w->folder = scratch_folder();
    snprintf(w->stream_path, sizeof w->stream_path, "%s/a.gpuprof", w->folder);
    snprintf(w->beside_path, sizeof w->beside_path, "%s/a.live", w->folder);
    snprintf(w->live_path, sizeof w->live_path, "%s/elsewhere", w->folder);
    builder_init(&w->b, 0);
    strcpy(w->b.header.live_path, w->live_path);
    /* Ticks that are no nanoseconds: 4 of them make one. */
    w->b.header.scale.ticks_zero = 1000;
    w->b.header.scale.mult = 1ull << (CLOCK_SCALE_SHIFT - 2);
    live_builder_init(&w->l, &w->b.header, CHUNK_BYTES, 8);
}

static void both_release(struct both *w)
{
    builder_release(&w->b);
    live_builder_release(&w->l);
    scratch_remove(w->folder);
}

static struct record call(uint64_t argument)
{
    return (struct record){.type = RECORD_CALL,
                           .code = API_CODE_cudaMalloc,
                           .begin = 1000 + 4 * 100 * (argument + 1),
                           .duration = 4 * 50,
                           .arg_count = 2,
                           .args = {argument, 64}};
}

/*
 * `total` calls of one thread fill chunks of the live file; of these `stored` calls are in the
 * stream as well. Record 0 of the thread is its THREAD record.
 */
static void fill(struct both *w, unsigned total, unsigned stored)
{
    uint64_t position = 0;
    uint32_t index = 0;
    size_t room = CHUNK_BYTES - LIVE_CHUNK_HEAD_BYTES;
    size_t used = 0;
    struct record thread = {.type = RECORD_THREAD,
                            .begin = 1300,
                            .arg_count = 1,
                            .args = {4711},
                            .bytes = (const uint8_t *)"worker",
                            .byte_count = 6};
    builder_api(&w->b);
    live_builder_chunk(&w->l, 0, LIVE_OWNED, 1, 4711, 0);
    for (unsigned i = 0; i <= total; i++) {
        struct record r = i ? call(i - 1) : thread;
        if (used + 64 > room) {
            live_builder_chunk(&w->l, index++, LIVE_FULL, 1, 4711, position);
            position += used;
            used = 0;
        }
        if (used == 0)
            live_builder_chunk(&w->l, index, LIVE_OWNED, 1, 4711, position);
        used += live_builder_add(&w->l, index, &r);
        if (i <= stored && stored)
            builder_add(&w->b, 1, &r);
    }
}

static void test_dedupe(void **state)
{
    (void)state;
    unsigned stored[] = {0, 1, 2, 100, 999, 1000};
    for (unsigned i = 0; i < sizeof stored / sizeof stored[0]; i++) {
        struct both w;
        both_init(&w);
        fill(&w, 1000, stored[i]);
        builder_save(&w.b, w.stream_path);
        live_builder_counter(&w.l, COUNTER_WAITS, 9);
        live_builder_save(&w.l, w.live_path);
        read_all(w.stream_path, true);
        assert_each_once(1000);
        assert_int_equal(seen.losses.live_records, stored[i] ? 1000 - stored[i] : 1001);
        assert_int_equal(seen.losses.counters[COUNTER_WAITS], 9);
        assert_string_equal(seen.thread_name, "worker");
        assert_int_equal(seen.tid, 4711);
        assert_int_equal(seen.verdict, EXIT_OK);
        assert_int_equal(seen.verdict_strict, EXIT_OK);
        both_release(&w);
    }
}

/* More calls than one chunk holds, the first chunks left over from before they were recycled. */
static void test_chunks(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    builder_api(&w.b);
    uint64_t position = 0;
    unsigned number = 0;
    for (unsigned block = 0; block < 3; block++) {
        for (unsigned i = 0; i < 200; i++) {
            struct record r = call(number++);
            builder_add(&w.b, 1, &r);
        }
        builder_flush(&w.b);
    }
    position = w.b.positions[1];
    uint32_t order[] = {5, 2, 7};
    for (unsigned c = 0; c < 3; c++) {
        live_builder_chunk(&w.l, order[c], c == 2 ? LIVE_OWNED : LIVE_FULL, 1, 5, position);
        for (unsigned i = 0; i < 200; i++) {
            struct record r = call(number++);
            position += live_builder_add(&w.l, order[c], &r);
        }
    }
    /* Free and taken chunks may hold anything. */
    live_builder_chunk(&w.l, 0, LIVE_FREE, 1, 5, 0);
    live_builder_chunk(&w.l, 1, LIVE_TAKEN, 1, 5, 0);
    struct record old = call(0);
    live_builder_add(&w.l, 0, &old);
    live_builder_add(&w.l, 1, &old);
    builder_save(&w.b, w.stream_path);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(1200);
    assert_int_equal(seen.losses.live_records, 600);
    assert_int_equal(seen.verdict_strict, EXIT_OK);
    both_release(&w);
}

/*
 * The thread filled up its first chunk after that was copied and before the second was: of one that
 * may still run nothing is lost, it is told up to there. Of one that has ended it is.
 */
static void test_gap_in_a_snapshot(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    builder_api(&w.b);
    uint64_t position = 0;
    for (unsigned number = 0; number < 20; number++) {
        if (number % 10 == 0)
            live_builder_chunk(&w.l, number / 10, LIVE_OWNED, 1, 5, position);
        struct record r = call(number);
        position += live_builder_add(&w.l, number / 10, &r) + (number == 9 ? 480 : 0);
    }
    builder_save(&w.b, w.stream_path);
    live_builder_save(&w.l, w.live_path);
    read_all(w.stream_path, true);
    assert_each_once(10);
    assert_int_equal(seen.verdict_strict, EXIT_OK);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(20);
    assert_int_equal(seen.losses.missing_bytes, 480);
    assert_int_equal(seen.verdict, EXIT_DAMAGED);
    both_release(&w);
}

static void test_open_call(void **state)
{
    (void)state;
    /* The last sign of life counts if it came behind all records; an old file has none. */
    static const uint64_t alive_ns[] = {0, 4000, 9000};
    for (unsigned i = 0; i < 6; i++) {
        bool recorded = i % 2;
        struct both w;
        both_init(&w);
        fill(&w, 10, 4);
        uint64_t args[2] = {0, 77};
        uint64_t begin = call(10).begin;
        /* A thread that was changing chunks: the same call in two of them. */
        const uint8_t *chunk = w.l.data + LIVE_HEAD_BYTES;
        uint64_t position = load_u64(chunk + LIVE_CHUNK_POSITION);
        uint64_t end = position + load_u64(chunk + LIVE_CHUNK_COMMITTED);
        live_builder_open_call(&w.l, 0, API_CODE_cudaMalloc, begin, 2, args);
        live_builder_chunk(&w.l, 3, LIVE_OWNED, 1, 4711, end);
        if (recorded) { /* and it ended in the second, or was stored since */
            struct record r = call(10);
            live_builder_add(&w.l, 3, &r);
        } else {
            live_builder_open_call(&w.l, 3, API_CODE_cudaMalloc, begin, 2, args);
        }
        builder_add(&w.b, 0, &(struct record){.type = RECORD_ANCHOR, .begin = 1000 + 4 * 5000});
        builder_save(&w.b, w.stream_path);
        store_u64(w.l.data + LIVE_OFFSET_ALIVE, alive_ns[i / 2] ? 1000 + 4 * alive_ns[i / 2] : 0);
        live_builder_save(&w.l, w.live_path);
        read_all(w.stream_path, true);
        assert_each_once(recorded ? 11 : 10);
        assert_int_equal(seen.open_calls, recorded ? 0 : 1);
        if (!recorded)
            assert_int_equal(seen.last_open_ns, (i / 2 == 2 ? 9000 : 5000) - 1100);
        both_release(&w);
    }
}

/* A block that was half written when the process died is no damage, wherever it is cut. */
static void test_torn(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 40, 20);
    builder_flush(&w.b);
    size_t whole = w.b.length;
    for (unsigned i = 20; i < 30; i++) {
        struct record r = call(i);
        builder_add(&w.b, 1, &r);
    }
    builder_flush(&w.b);
    live_builder_save(&w.l, w.live_path);
    for (size_t length = whole; length <= w.b.length; length++) {
        builder_write_file(w.stream_path, w.b.data, length);
        read_all(w.stream_path, true);
        assert_each_once(40);
        assert_int_equal(seen.verdict_strict, EXIT_OK);
    }
    both_release(&w);
}

static void test_header_only(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 5, 0);
    builder_write_file(w.stream_path, "", 0); /* died before it had written its header */
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(5);
    assert_int_equal(seen.verdict_strict, EXIT_OK);
    both_release(&w);
}

static void test_damaged_live(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 50, 10);
    builder_save(&w.b, w.stream_path);
    uint8_t *chunk = w.l.data + LIVE_HEAD_BYTES + LIVE_CHUNK_HEAD_BYTES;
    memset(chunk + 48 * 40, 0, 16); /* a record in the middle */
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_true(seen.calls < 50 && seen.calls >= 38);
    assert_true(seen.losses.live_damaged_bytes > 0);
    assert_int_equal(seen.verdict, EXIT_DAMAGED);
    /* A live file of which not even the head is whole, beside the stream file. */
    memset(w.l.data + LIVE_OFFSET_CHUNK_BYTES, 0xff, 4);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(10);
    assert_int_equal(seen.losses.live_damaged, 1);
    assert_int_equal(seen.verdict, EXIT_DAMAGED);
    both_release(&w);
}

/*
 * Of what the program wrote over the first page, or a chunk's head, no number becomes one of what
 * is missing that cannot be.
 */
static void test_strange_counters(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 50, 10);
    builder_save(&w.b, w.stream_path);
    uint8_t *counters = w.l.data + LIVE_OFFSET_COUNTERS;
    store_u64(counters + 8 * COUNTER_DROPPED, 7);
    store_u64(w.l.data + LIVE_OFFSET_ALIVE, UINT64_MAX);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_int_equal(seen.losses.counters_damaged, 0);
    assert_int_equal(seen.losses.counters[COUNTER_DROPPED], 7);
    assert_int_equal(seen.verdict, EXIT_OK);
    const struct {
        size_t offset;
        uint64_t value;
    } places[] = {
        {LIVE_OFFSET_COUNTERS + 8 * COUNTER_UNRECORDED, 0x00007fff12345678}, /* an address */
        {LIVE_OFFSET_COUNTERS + 8 * COUNTER_UNRECORDED, 0x3ff0000000000000}, /* 1.0 */
        {LIVE_OFFSET_BYTES, UINT64_MAX},
        {LIVE_HEAD_BYTES + LIVE_CHUNK_PASSED, UINT64_MAX - 1},
    };
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        uint8_t *place = w.l.data + places[i].offset;
        uint64_t old = load_u64(place);
        store_u64(place, places[i].value);
        live_builder_save(&w.l, w.beside_path);
        store_u64(place, old);
        read_all(w.stream_path, true);
        assert_each_once(50);
        assert_int_equal(seen.losses.counters_damaged, 1);
        assert_int_equal(seen.losses.live_damaged_bytes, 0);
        assert_int_equal(seen.losses.counters[COUNTER_DROPPED], 7);
        assert_int_equal(seen.losses.counters[COUNTER_UNRECORDED], 0);
        assert_int_equal(seen.losses.counters[COUNTER_PASSED_BY], 0);
        assert_int_equal(seen.verdict, EXIT_DAMAGED);
    }
    store_u64(w.l.data + LIVE_HEAD_BYTES + LIVE_CHUNK_POSITION, 1ull << 60);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(10);
    assert_int_equal(seen.losses.missing_bytes, 0);
    assert_true(seen.losses.live_damaged_bytes > 0 && seen.losses.live_damaged_bytes < CHUNK_BYTES);
    both_release(&w);
}

/* What is in the stream was written over since: nothing is lost. */
static void test_stored_is_overwritten(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 50, 30);
    builder_save(&w.b, w.stream_path);
    memset(w.l.data + LIVE_HEAD_BYTES + LIVE_CHUNK_HEAD_BYTES + 48 * 10, 0, 200);
    live_builder_save(&w.l, w.beside_path);
    read_all(w.stream_path, true);
    assert_each_once(50);
    assert_int_equal(seen.verdict_strict, EXIT_OK);
    both_release(&w);
}

/* The path in the header is only followed to a file of the same process. */
static void test_other_process(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 20, 10);
    builder_save(&w.b, w.stream_path);
    w.b.header.process_id[3] ^= 1;
    assert_true(stream_header_write(&w.b.header, w.l.data, STREAM_HEADER_BYTES_MAX) > 0);
    live_builder_save(&w.l, w.live_path);
    read_all(w.stream_path, true);
    assert_each_once(10);
    assert_int_equal(seen.losses.not_ended, 1);
    assert_int_equal(seen.verdict, EXIT_OK);
    assert_int_equal(seen.verdict_strict, EXIT_DAMAGED);
    both_release(&w);
}

/* Makes the header say that its process is one of this machine, which has ended or runs. */
static void make_local(struct stream_header *h, uint32_t pid, uint64_t start_time)
{
    struct stat status;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    assert_non_null(file);
    for (unsigned i = 0; i < 16; i++) {
        unsigned byte = 0;
        int c;
        for (unsigned digits = 0; digits < 2 && (c = fgetc(file)) != EOF;) {
            if (c == '-')
                continue;
            byte = byte << 4 | (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10);
            digits++;
        }
        h->boot_id[i] = (uint8_t)byte;
    }
    fclose(file);
    assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
    h->pid_namespace = status.st_ino;
    h->pid = pid;
    h->start_time = start_time;
}

static uint64_t own_start_time(void)
{
    char text[1024] = "";
    FILE *file = fopen("/proc/self/stat", "re");
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    char *p = strrchr(text, ')');
    for (int field = 2; field < 22; field++)
        p = strchr(p + 1, ' ');
    return strtoull(p + 1, NULL, 10);
}

static void rewrite_headers(struct both *w)
{
    uint8_t header[STREAM_HEADER_BYTES_MAX];
    int size = stream_header_write(&w->b.header, header, sizeof header);
    assert_true(size > 0);
    memcpy(w->b.data, header, (size_t)size);
    memcpy(w->l.data, header, (size_t)size);
}

static void test_adopt(void **state)
{
    (void)state;
    struct both w;
    both_init(&w);
    fill(&w, 300, 100);
    builder_flush(&w.b);
    /* Of a running process (this one) it stays, and is read from a copy. */
    make_local(&w.b.header, (uint32_t)getpid(), own_start_time());
    rewrite_headers(&w);
    builder_save(&w.b, w.stream_path);
    live_builder_save(&w.l, w.live_path);
    assert_int_equal(live_adopt(w.stream_path), 0);
    read_all(w.stream_path, false);
    assert_each_once(300);
    assert_int_equal(seen.losses.running, 1);
    assert_int_equal(access(w.live_path, F_OK), 0);
    /* The pid is used again by another process (another start time): its owner has ended. */
    make_local(&w.b.header, (uint32_t)getpid(), own_start_time() + 1);
    rewrite_headers(&w);
    builder_save(&w.b, w.stream_path);
    live_builder_save(&w.l, w.live_path);
    read_all(w.stream_path, true);
    assert_each_once(300);
    assert_int_equal(access(w.live_path, F_OK), 0);
    assert_int_equal(live_adopt(w.stream_path), 1);
    assert_int_equal(access(w.live_path, F_OK), -1);
    assert_int_equal(access(w.beside_path, F_OK), 0);
    assert_int_equal(live_adopt(w.stream_path), 0);
    read_all(w.stream_path, false);
    assert_each_once(300);
    assert_int_equal(seen.losses.running, 0);
    assert_int_equal(seen.verdict_strict, EXIT_OK);
    both_release(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dedupe),
        cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_gap_in_a_snapshot),
        cmocka_unit_test(test_open_call),
        cmocka_unit_test(test_torn),
        cmocka_unit_test(test_header_only),
        cmocka_unit_test(test_damaged_live),
        cmocka_unit_test(test_strange_counters),
        cmocka_unit_test(test_other_process),
        cmocka_unit_test(test_adopt),
        cmocka_unit_test(test_stored_is_overwritten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
