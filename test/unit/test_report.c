/* SPDX-License-Identifier: Apache-2.0 */
/* The summary at the end of a run, with and without reading the events. */
#include "unit_test.h"

#include <time.h>

#include "api.h"
#include "report.h"
#include "stream_builder.h"
#include "verbs.h"

#define FUNCTIONS_HERE 64000

static void make(const char *folder, bool damaged)
{
    struct stream_builder b;
    char path[400];
    builder_init(&b, 0);
    builder_api(&b);
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t copy[5] = {1, 2, 1 << 20, 1, 0};
        uint64_t alloc[2] = {3, 64};
        builder_call(&b, 1, API_INDEX_cudaMemcpyAsync, 1000 * i, 400, 0, 5, copy);
        builder_call(&b, 2, API_INDEX_cudaMalloc, 1000 * i, 100, i == 5 ? 2 : 0, 2, alloc);
    }
    builder_end(&b);
    builder_flush(&b);
    if (damaged)
        b.data[b.block_offsets[10] + BLOCK_HEADER_BYTES + 20] ^= 1;
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    builder_save(&b, path);
    builder_release(&b);
}

/* What report_summary writes about `folder`. */
static char *summary(const char *folder, int *code)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    *code = report_summary(folder, out);
    fclose(out);
    return text;
}

static void test_summary(void **state)
{
    (void)state;
    int code;
    const char *folder = scratch_folder();
    char *text = summary(folder, &code);
    assert_int_equal(code, EXIT_USAGE);
    assert_string_equal(text, "");
    free(text);
    make(folder, false);
    text = summary(folder, &code);
    assert_int_equal(code, EXIT_OK);
    assert_string_equal(text, "  wall time  99.400 us\n"
                              "  processes  1 (2 threads)\n"
                              "  calls      200, 1 returned an error (first "
                              "cudaErrorMemoryAllocation of cudaMalloc)\n"
                              "  copied     100.0 MiB in 100 calls\n"
                              "  GPU        rows absent: this version records host calls only\n"
                              "   80.0%   40.000 us  100 x cudaMemcpyAsync\n"
                              "   20.0%   10.000 us  100 x cudaMalloc\n"
                              "  lost       nothing\n");
    free(text);
    make(folder, true);
    text = summary(folder, &code);
    assert_int_equal(code, EXIT_DAMAGED);
    assert_non_null(strstr(text, "lost       blocks damaged: 1"));
    free(text);
    scratch_remove(folder);
}

/* A recording too large to read at the end of a run: a hole makes it so. */
static void test_large(void **state)
{
    (void)state;
    int code;
    char command[500];
    const char *folder = scratch_folder();
    make(folder, false);
    snprintf(command, sizeof command, "truncate -s 300M '%s/a.gpuprof'", folder);
    assert_int_equal(system(command), 0);
    char *text = summary(folder, &code);
    assert_int_equal(code, EXIT_DAMAGED); /* the hole is no block */
    assert_non_null(strstr(text, "calls      200 (about)"));
    assert_non_null(strstr(text, "wall time  99.400 us"));
    assert_null(strstr(text, "cudaMalloc"));
    free(text);
    scratch_remove(folder);
}

/* Whatever a file's functions are called: their number does not multiply with itself. */
static void test_many_functions(void **state)
{
    (void)state;
    struct stream_builder b;
    struct recording rec;
    struct report report;
    struct recording_options how = {.quiet = true};
    const char *folder = scratch_folder();
    char path[400], *paths[] = {(char *)folder};
    builder_init(&b, 0);
    b.header.api_crc ^= 1; /* nobody describes them */
    for (unsigned i = 0; i < 2 * FUNCTIONS_HERE; i++)
        builder_call(&b, 1, i % FUNCTIONS_HERE, 10 * i, 5, 0, 0, NULL);
    builder_end(&b);
    builder_flush(&b);
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    builder_save(&b, path);
    builder_release(&b);
    clock_t begin = clock();
    assert_int_equal(recording_open(&rec, paths, 1, &how), EXIT_OK);
    assert_int_equal(report_make(&report, &rec, BY_NAME, NULL), 0);
    assert_true(clock() - begin < 4 * CLOCKS_PER_SEC);
    assert_int_equal(report.row_count, FUNCTIONS_HERE);
    for (unsigned i = 0; i < report.row_count; i++)
        assert_int_equal(report.rows[i].count, 2);
    report_release(&report);
    recording_release(&rec);
    scratch_remove(folder);
}

/* What an event is made of. */
struct made {
    struct function function;
    struct process *process; /* owned */
    struct thread thread;
    struct record record;
};

static struct event make_event(struct made *m)
{
    *m = (struct made){.function = {.symbol = "cudaFree", .name = "cudaFree"},
                       .process = calloc(1, sizeof *m->process),
                       .thread = {.number = 1},
                       .record = {.type = RECORD_CALL}};
    assert_non_null(m->process);
    return (struct event){.record = &m->record,
                          .process = m->process,
                          .thread = &m->thread,
                          .function = &m->function};
}

/* Of many, those that have lasted longest are kept. */
static void test_open_calls(void **state)
{
    (void)state;
    struct open_calls open = {0};
    struct made m;
    struct event event = make_event(&m);
    open_calls_take(&open, &event);
    assert_int_equal(open.total, 0);
    m.record.flags = RECORD_OPEN;
    for (unsigned i = 0; i < 40; i++) {
        event.end_ns = 1 + i * 7 % 40;
        open_calls_take(&open, &event);
    }
    assert_int_equal(open.total, 40);
    assert_int_equal(open.count, OPEN_CALLS_MAX);
    for (unsigned i = 0; i < open.count; i++)
        assert_int_equal(open.calls[i].duration_ns, 40 - i);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    open_calls_print_summary(&open, out);
    open_calls_print_text(&open, out);
    fclose(out);
    assert_memory_equal(text,
                        "  open       cudaFree had not returned after 40 ns, in process 0; "
                        "nor had 39 more\n",
                        81);
    assert_non_null(strstr(text, "        40 ns  cudaFree, in thread 1 of process (pid 0)\n"));
    assert_non_null(strstr(text, "  ... and 8 more\n"));
    free(text);
    free(m.process);
}

/* In the order of their first coming, up to a number. */
static void test_failures(void **state)
{
    (void)state;
    struct failures failures = {0};
    struct made m;
    struct event event = make_event(&m);
    for (unsigned i = 0; i < 2 * (FAILURES_MAX + 3); i++) {
        m.record.result = (int)(1000 + i / 2);
        event.end_ns = 10 + i;
        failures_take(&failures, &event, &m.function, 2);
    }
    assert_int_equal(failures.count, FAILURES_MAX);
    assert_int_equal(failures.others, 3 * 2 * 2);
    for (unsigned i = 0; i < failures.count; i++) {
        assert_int_equal(failures.rows[i].result, 1000 + i);
        assert_int_equal(failures.rows[i].count, 2 * 2);
        assert_int_equal(failures.rows[i].first_ns, 10 + 2 * i);
    }
    free(m.process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),        cmocka_unit_test(test_large),
        cmocka_unit_test(test_many_functions), cmocka_unit_test(test_open_calls),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
