/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The merge against a brute-force sort: random processes and threads with nested calls and shuffled
 * blocks; with blocks kept open as windows only, and with an index too small for the blocks.
 */
#include "unit_test.h"

#include "api/api.h"
#include "read/recording.h"
#include "resolve/timeline.h"
#include "stream_builder.h"

#define EVENTS_MAX         60000
#define THREADS_MAX_HERE   5
#define PROCESSES_MAX_HERE 4
#define SMALL_BLOCKS       2000u

struct expected {
    uint64_t begin_ns;
    uint64_t end_ns;
    uint32_t process;
    uint32_t thread;
    uint64_t order; /* in the thread's records */
    uint64_t argument;
};

static struct expected expected[EVENTS_MAX];
static unsigned expected_count;

static int compare_expected(const void *left, const void *right)
{
    const struct expected *a = left;
    const struct expected *b = right;
    if (a->begin_ns != b->begin_ns)
        return a->begin_ns < b->begin_ns ? -1 : 1;
    if (a->process != b->process)
        return a->process < b->process ? -1 : 1;
    if (a->thread != b->thread)
        return a->thread < b->thread ? -1 : 1;
    if (a->end_ns != b->end_ns)
        return a->end_ns > b->end_ns ? -1 : 1;
    return a->order < b->order ? -1 : a->order > b->order;
}

struct made_thread {
    uint64_t now;
    uint64_t order;
};

static void add_call(struct stream_builder *b, uint32_t process, uint32_t thread,
                     struct made_thread *t, uint64_t begin, uint64_t duration)
{
    uint64_t args[2] = {expected_count, 64};
    builder_call(b, thread, API_CODE_cudaMalloc, begin, duration, 0, 2, args);
    uint64_t zero = b->header.realtime_zero_ns;
    assert_true(expected_count < EVENTS_MAX);
    expected[expected_count] = (struct expected){
        zero + begin, zero + begin + duration, process, thread, t->order++, expected_count};
    expected_count++;
}

/* Calls as a thread records them: in the order in which they return, nested ones first. */
static void add_calls(struct stream_builder *b, uint64_t *seed, uint32_t process, uint32_t thread,
                      struct made_thread *t, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        uint64_t begin = t->now + random_of(seed) % 30;
        uint64_t end = begin + random_of(seed) % 50;
        unsigned nested = random_of(seed) % 4 ? 0 : (unsigned)(random_of(seed) % 20);
        for (unsigned k = 0; k < nested; k++) {
            add_call(b, process, thread, t, end, random_of(seed) % 3);
            end += 3 + random_of(seed) % 2;
        }
        add_call(b, process, thread, t, begin, end - begin);
        t->now = end + random_of(seed) % 4;
    }
}

static void make_recording(const char *folder, uint64_t seed, unsigned processes)
{
    expected_count = 0;
    for (unsigned p = 0; p < processes; p++) {
        struct stream_builder b;
        struct made_thread threads[THREADS_MAX_HERE] = {{0}};
        builder_init(&b, p);
        b.header.realtime_zero_ns += p; /* the order of the processes */
        b.header.monotonic_zero_ns += p;
        builder_api(&b);
        for (unsigned part = 0; part < 60; part++) {
            uint32_t thread = (uint32_t)(1 + random_of(&seed) % THREADS_MAX_HERE);
            add_calls(&b, &seed, p, thread, &threads[thread - 1],
                      1 + (unsigned)(random_of(&seed) % 60));
            if (random_of(&seed) % 2)
                builder_flush(&b);
        }
        builder_finish(&b, "%s/%u.gpuprof", folder, 9 - p); /* not in name order */
    }
    qsort(expected, expected_count, sizeof expected[0], compare_expected);
}

static void compare(const char *folder, uint64_t open_bytes_max, uint32_t index_entries_max)
{
    struct recording rec;
    struct recording_options options = {.keep_live = true, .index_entries_max = index_entries_max};
    char *paths[] = {(char *)folder};
    assert_int_equal(recording_open(&rec, paths, 1, &options), EXIT_OK);
    if (index_entries_max)
        assert_true(rec.index.count <= index_entries_max && rec.index.run_max > 1);
    struct losses losses[PROCESSES_MAX_HERE];
    for (uint32_t i = 0; i < rec.count; i++)
        losses[i] = rec.processes[i]->losses;
    struct timeline *t = timeline_create(&rec, losses, open_bytes_max, &(struct timeline_scope){0});
    struct event event;
    unsigned calls = 0;
    int more;
    while ((more = timeline_next(t, &event)) > 0) {
        if (event.record->type != RECORD_CALL)
            continue;
        assert_true(calls < expected_count);
        const struct expected *e = &expected[calls++];
        assert_true(event.begin_ns == e->begin_ns && event.end_ns == e->end_ns);
        assert_int_equal(event.process->index, e->process);
        assert_int_equal(event.thread->number, e->thread);
        assert_true(event.record->args[0] == e->argument);
        assert_string_equal(event.function->symbol, "cudaMalloc");
    }
    assert_int_equal(more, 0);
    assert_int_equal(calls, expected_count);
    timeline_free(t);
    assert_int_equal(recording_verdict(&rec, losses, false, true), EXIT_OK);
    recording_release(&rec);
}

static void test_merge(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        const char *folder = scratch_folder();
        make_recording(folder, 100 + round, 1 + round % 4);
        compare(folder, OPEN_BYTES_MAX, 0);
        compare(folder, 0, 0);
        compare(folder, OPEN_BYTES_MAX, 16);
        compare(folder, 20000, 16);
        scratch_remove(folder);
    }
}

/* Reads of this process so far; 0: the kernel does not count them. */
static unsigned long long reads_so_far(void)
{
    unsigned long long count = 0;
    FILE *io = fopen("/proc/self/io", "r");
    if (io && fscanf(io, "rchar: %*u wchar: %*u syscr: %llu", &count) != 1)
        count = 0;
    if (io)
        fclose(io);
    return count;
}

/* A read has many small blocks in it, also where an entry of the index stands for several. */
static void test_few_reads(void **state)
{
    (void)state;
    if (!reads_so_far())
        skip();
    const char *folder = scratch_folder();
    for (unsigned p = 0; p < PROCESSES_MAX_HERE; p++) {
        struct stream_builder b;
        builder_init(&b, p);
        builder_api(&b);
        for (uint64_t i = 0; i < SMALL_BLOCKS; i++) {
            builder_call(&b, 1 + i % 2, API_CODE_cudaMalloc, 100 * i, 5, 0, 0, NULL);
            builder_flush(&b);
        }
        builder_finish(&b, "%s/%u.gpuprof", folder, p);
    }
    for (uint32_t entries = 0; entries <= 256; entries += 256) {
        struct recording rec;
        struct recording_options options = {.keep_live = true, .index_entries_max = entries};
        char *paths[] = {(char *)folder};
        unsigned long long reads = reads_so_far();
        assert_int_equal(recording_open(&rec, paths, 1, &options), EXIT_OK);
        struct losses losses[PROCESSES_MAX_HERE] = {{0}};
        struct timeline *t =
            timeline_create(&rec, losses, OPEN_BYTES_MAX, &(struct timeline_scope){0});
        struct event event;
        unsigned calls = 0;
        while (timeline_next(t, &event) > 0)
            calls += event.record->type == RECORD_CALL;
        assert_int_equal(calls, PROCESSES_MAX_HERE * SMALL_BLOCKS);
        timeline_free(t);
        recording_release(&rec);
        assert_true(reads_so_far() - reads < PROCESSES_MAX_HERE * SMALL_BLOCKS / 8);
    }
    scratch_remove(folder);
}

/* Two hosts whose clocks began at different times meet by CLOCK_REALTIME. */
static void test_hosts(void **state)
{
    (void)state;
    const char *folder = scratch_folder();
    for (unsigned p = 0; p < 2; p++) {
        struct stream_builder b;
        uint64_t args[2] = {p, 1};
        builder_init(&b, p);
        memset(b.header.boot_id, (int)(p + 1), sizeof b.header.boot_id);
        b.header.monotonic_zero_ns = p ? 77 : 999999999;
        b.header.realtime_zero_ns = 1000000 + p * 500;
        b.header.pid = 4; /* the same on both */
        builder_api(&b);
        builder_thread(&b, 1, 0, 4, "a");
        builder_thread(&b, 2, 0, 4, "b"); /* a tid used again */
        builder_call(&b, 1, API_CODE_cudaMalloc, 100, 5, 0, 2, args);
        builder_call(&b, 1, API_CODE_cudaMalloc, 700, 5, 0, 2, args);
        builder_finish(&b, "%s/%u.gpuprof", folder, p);
    }
    struct recording rec;
    struct recording_options options = {.keep_live = true};
    char *paths[] = {(char *)folder};
    assert_int_equal(recording_open(&rec, paths, 1, &options), EXIT_OK);
    struct losses losses[2] = {rec.processes[0]->losses, rec.processes[1]->losses};
    struct timeline *t = timeline_create(&rec, losses, OPEN_BYTES_MAX, &(struct timeline_scope){0});
    static const uint64_t times[] = {1000100, 1000600, 1000700, 1001200};
    static const unsigned owners[] = {0, 1, 0, 1};
    struct event event;
    unsigned calls = 0;
    while (timeline_next(t, &event) > 0) {
        if (event.record->type != RECORD_CALL)
            continue;
        assert_true(event.begin_ns == times[calls] && event.record->args[0] == owners[calls]);
        calls++;
    }
    assert_int_equal(calls, 4);
    timeline_free(t);
    assert_int_equal(rec.processes[0]->shown_pid, 4);
    assert_int_not_equal(rec.processes[1]->shown_pid, 4);
    for (unsigned p = 0; p < 2; p++) {
        uint32_t a = thread_find(&rec.processes[p]->threads, 1)->shown_tid;
        uint32_t b = thread_find(&rec.processes[p]->threads, 2)->shown_tid;
        assert_int_equal(a, rec.processes[p]->shown_pid);
        assert_int_not_equal(a, b);
    }
    recording_release(&rec);
    scratch_remove(folder);
}

/* What a run of blocks has, all of them have together; if one does not say, nobody knows. */
static void test_joined(void **state)
{
    (void)state;
    struct block_index x = {.entries_max = 4};
    for (uint64_t i = 0; i < 16; i++) {
        struct block_header h = {.min_ns = 100 - i,
                                 .max_ns = 200 - i,
                                 .types = i == 15 ? 0 : UINT64_C(2) << i,
                                 .flags = BLOCK_PLAIN_CALLS,
                                 .record_count = 10};
        block_index_add(&x, 0, i, &h, false);
    }
    assert_true(x.count < 16 && x.entries[0].count > 1);
    assert_true(x.entries[0].types == (UINT64_C(2) << x.entries[0].count) - 2);
    assert_true(x.entries[0].records == 10 * x.entries[0].count);
    assert_true(x.entries[0].time == UINT64_C(101) - x.entries[0].count && x.entries[0].end == 200);
    assert_true(x.entries[x.count - 1].types == 0);
    block_index_release(&x);
    for (unsigned plain = 0; plain < 2; plain++) {
        const struct block_header h = {.types = block_type_bit(RECORD_CALL),
                                       .flags = plain ? BLOCK_PLAIN_CALLS : 0};
        assert_int_equal(block_types(&h) & BLOCK_STATEFUL, !plain);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge),
        cmocka_unit_test(test_few_reads),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
