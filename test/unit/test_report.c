/* SPDX-License-Identifier: Apache-2.0 */
/* The summary at the end of a run, with and without reading the events. */
#include "unit_test.h"

#include <time.h>

#include "api/api.h"
#include "report/report.h"
#include "stream_builder.h"

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
        builder_call(&b, 1, API_CODE_cudaMemcpyAsync, 1000 * i, 400, 0, 5, copy);
        builder_call(&b, 2, API_CODE_cudaMalloc, 1000 * i, 100, i == 5 ? 2 : 0, 2, alloc);
    }
    builder_end(&b);
    builder_flush(&b);
    if (damaged)
        b.data[b.block_offsets[10] + BLOCK_HEADER_BYTES + 20] ^= 1;
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    builder_save(&b, path);
    builder_release(&b);
}

/* What report_summary writes about `folder` in that time. */
static char *summary_within(const char *folder, uint64_t walk_ns_max, int *code)
{
    char *paths[] = {(char *)folder};
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    assert_non_null(out);
    *code = report_summary(paths, 1, walk_ns_max, NULL, out);
    fclose(out);
    return text;
}

static char *summary(const char *folder, int *code)
{
    return summary_within(folder, 0, code);
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
    assert_string_equal(text,
                        "  no memory  64 B wanted, 64 B held, at cudaMalloc\n"
                        "  try        cudaMalloc held 64 B of it (100%): make that smaller "
                        "first\n"
                        "  error      1 failed; first cudaErrorMemoryAllocation of cudaMalloc\n"
                        "  wall time  4.000 s; 1 process, 2 threads, 200 calls\n"
                        "  start-up   4.000 s until the first call\n"
                        "  GPU        rows absent: the recording does not say why\n"
                        "  calls       80.0%   40.000 us  100 x cudaMemcpyAsync\n"
                        "              20.0%   10.000 us  100 x cudaMalloc\n"
                        "  copied     100.0 MiB in 100 calls\n"
                        "  lost       nothing\n");
    free(text);
    make(folder, true);
    text = summary(folder, &code);
    assert_int_equal(code, EXIT_DAMAGED);
    assert_non_null(strstr(text, "lost       blocks damaged: 1"));
    free(text);
    scratch_remove(folder);
}

/* What is copied inside of another call counts once, and a fill is no copy; shares add up to 1. */
static void test_nested(void **state)
{
    (void)state;
    struct stream_builder b;
    char path[400];
    int code;
    const char *folder = scratch_folder();
    const struct record calls[] = {
        {.code = API_CODE_cudaMemcpyAsync, .duration = 400, .args = {1, 2, 1 << 20, 1, 0}},
        {.code = API_CODE_cuMemcpyAsync,
         .begin = 100,
         .duration = 200,
         .flags = RECORD_NESTED,
         .args = {1, 2, 1 << 20, 1, 0}},
        {.code = API_CODE_cudaMemset, .begin = 1000, .duration = 100, .args = {1, 0, 1 << 20}},
    };
    builder_init(&b, 0);
    builder_api(&b);
    for (unsigned i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        struct record r = calls[i];
        r.type = RECORD_CALL;
        r.arg_count = api_functions[r.code].arg_count;
        builder_add(&b, 1, &r);
    }
    builder_end(&b);
    builder_flush(&b);
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    builder_save(&b, path);
    builder_release(&b);
    char *text = summary(folder, &code);
    assert_non_null(strstr(text, "  copied     1.0 MiB in 1 call\n"));
    assert_non_null(strstr(text, "  calls       80.0%      400 ns  1 x cudaMemcpyAsync\n"
                                 "                         200 ns  1 x cuMemcpyAsync\n"
                                 "              20.0%      100 ns  1 x cudaMemset\n"));
    free(text);
    scratch_remove(folder);
}

/* Of a program that is over at once gpuprof's own cost may be more than the time of its threads. */
static void test_cost_of_a_short_program(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t args[4];
    } rows[] = {{"alloc", {2, 2, 1186, 1186}}, {"start", {3, 3, 9000, 9000}}};
    const uint64_t sums[10] = {1, 1000, 1186, 1, 1000, 1186, 900, 5000, 0, 0};
    struct stream_builder b;
    struct recording rec;
    struct report report;
    char path[400], *text = NULL;
    size_t length = 0;
    const char *folder = scratch_folder();
    builder_init(&b, 0);
    builder_api(&b);
    for (unsigned i = 0; i < 2; i++)
        builder_record(&b, 1, RECORD_COST, 2000, 0, 0, 4, rows[i].args, rows[i].name);
    builder_record(&b, 1, RECORD_COST_SUM, 2001, 0, 0, 10, sums, NULL);
    builder_end(&b);
    builder_flush(&b);
    snprintf(path, sizeof path, "%s/a.gpuprof", folder);
    builder_save(&b, path);
    builder_release(&b);
    char *paths[] = {path};
    struct recording_options how = {.quiet = true};
    assert_int_equal(recording_open(&rec, paths, 1, &how), EXIT_OK);
    assert_int_equal(report_make(&report, &rec, &(struct report_request){.by = BY_NAME}), 0);
    FILE *out = open_memstream(&text, &length);
    const struct report_view view = {.tables = "cost", .how.limit = ROWS_UNLIMITED};
    report_print_text(&report, &view, out);
    fclose(out);
    assert_non_null(strstr(text, "100.00%     1.186 us            2       593 ns  alloc"));
    assert_non_null(strstr(text, " 90.00%     9.000 us            3     3.000 us  starts"));
    assert_non_null(strstr(text, "without start-up: 100.00%; in the busiest thread 100.00%"));
    free(text);
    report_release(&report);
    recording_release(&rec);
    scratch_remove(folder);
}

/* A recording too large to be read at the end of a run: what was read is said, and how much. */
static void test_large(void **state)
{
    (void)state;
    int code;
    const char *folder = scratch_folder();
    make(folder, false);
    char *text = summary_within(folder, 1, &code);
    assert_int_equal(code, EXIT_OK);
    const char *whole = "  wall time  4.000 s; 1 process, 2 threads, ";
    assert_memory_equal(text, whole, strlen(whole));
    assert_non_null(strstr(text, "\n  read       quick summary of the first "));
    assert_non_null(strstr(text, " x cuda"));
    assert_null(strstr(text, " 200 calls"));
    assert_non_null(strstr(text, "lost       nothing of what was read"));
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
    assert_int_equal(report_make(&report, &rec, &(struct report_request){.by = BY_NAME}), 0);
    assert_true(clock() - begin < 4 * CLOCKS_PER_SEC);
    const struct sums *functions = &report.sums[ANALYSIS_functions_sums];
    assert_int_equal(functions->count, FUNCTIONS_HERE);
    for (unsigned i = 0; i < functions->count; i++)
        assert_int_equal(functions->rows[i].values[0], 2);
    report_release(&report);
    recording_release(&rec);
    scratch_remove(folder);
}

/* What an event is made of. */
struct made {
    struct process *process; /* owned */
    struct thread thread;
    struct record record;
    struct function function;
};

static struct slice make_slice(struct made *m, struct walk *walk)
{
    *m = (struct made){.function = {.symbol = "cudaFree", .name = "cudaFree"},
                       .process = calloc(1, sizeof *m->process),
                       .thread = {.number = 1},
                       .record = {.type = RECORD_CALL}};
    assert_non_null(m->process);
    return (struct slice){.walk = walk,
                          .event = {.record = &m->record,
                                    .process = m->process,
                                    .thread = &m->thread,
                                    .function = &m->function}};
}

static void print_open_calls(const struct open_calls *open, FILE *out)
{
    const struct table_view all = {.limit = ROWS_UNLIMITED};
    struct table table = {.info = &open_calls_table, .source = open};
    table_print_text(&table, &all, out);
}

/* Of many, those that have lasted longest are kept. */
static void test_open_calls(void **state)
{
    (void)state;
    struct open_calls open = {0};
    struct made m;
    struct walk walk = {.rec = NULL};
    struct slice slice = make_slice(&m, &walk);
    open_calls_take(&open, &slice);
    assert_int_equal(open.total, 0);
    m.record.flags = RECORD_OPEN;
    for (unsigned i = 0; i < 40; i++) {
        slice.event.end_ns = 1 + i * 7 % 40;
        open_calls_take(&open, &slice);
    }
    assert_int_equal(open.total, 40);
    assert_int_equal(open.count, OPEN_CALLS_MAX);
    for (unsigned i = 0; i < open.count; i++)
        assert_int_equal(open.calls[i].duration_ns, 40 - i);
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    print_open_calls(&open, out);
    fclose(out);
    assert_non_null(strstr(text, "        40 ns  cudaFree, in thread 1 of process (pid 0)\n"));
    assert_non_null(strstr(text, "  ... and 8 more\n"));
    free(text);
    text = open_calls_text(&open);
    assert_string_equal(text, "cudaFree had not returned after 40 ns, in process 0");
    free(text);
    /* Nothing is known of its process behind its begin: that is no hang. */
    open = (struct open_calls){0};
    slice.event.end_ns = slice.event.begin_ns;
    open_calls_take(&open, &slice);
    open_calls_take(&open, &slice);
    out = open_memstream(&text, &length);
    print_open_calls(&open, out);
    fclose(out);
    assert_non_null(strstr(text, "   just begun  cudaFree, in"));
    assert_null(strstr(text, "0 ns"));
    free(text);
    text = open_calls_text(&open);
    assert_string_equal(text,
                        "cudaFree had not returned at the end of its recording, in process 0");
    free(text);
    free(m.process);
}

/* In the order of their first coming, up to a number; the others have one row. */
static void test_failures(void **state)
{
    (void)state;
    struct recording rec = {0};
    struct walk walk = {.rec = &rec};
    struct sums failures;
    struct made m;
    struct slice slice = make_slice(&m, NULL);
    m.record.weight = 2;
    sums_init(&failures, &failures_sums, &walk, NULL);
    for (unsigned i = 0; i < 2 * (FAILURES_MAX + 3); i++) {
        m.record.result = (int)(1000 + i / 2);
        slice.event.begin_ns = slice.event.end_ns = 10 + i;
        assert_int_equal(failures_sums.consumer.take_call(&failures, &slice), 0);
    }
    sums_finish(&failures);
    assert_int_equal(failures.count, FAILURES_MAX + 1);
    for (unsigned i = 0; i < failures.count; i++) {
        const struct sums_row *row = &failures.rows[i];
        bool is_others = i == FAILURES_MAX;
        assert_int_equal(row->keys[2], is_others ? SUMS_OTHERS : 1000 + i);
        assert_int_equal(row->values[0], (is_others ? 3 : 1) * 2 * 2);
        assert_int_equal(row->values[5], 10 + 2 * i);
    }
    assert_int_equal(failures.whole[0], (FAILURES_MAX + 3) * 2 * 2);
    sums_release(&failures);
    free(m.process);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_summary),
        cmocka_unit_test(test_nested),
        cmocka_unit_test(test_cost_of_a_short_program),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_many_functions),
        cmocka_unit_test(test_open_calls),
        cmocka_unit_test(test_failures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
