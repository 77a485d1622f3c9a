/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of kept rows whose checksums and key are right, and which say what no report wrote: they
 * are refused, or give a table that can be printed, and cost no more than the recording does
 * (GPUPROF_TEST_MUTATIONS: how many are made at random).
 */
#include "unit_test.h"

#include "analyse/report_make.h"
#include "api/api.h"
#include "report/report.h"
#include "report/report_tables.h"
#include "resolve/kept_rows.h"
#include "resolve/symbols.h"
#include "stream_builder.h"

#define MUTATIONS  600
#define SECTIONS   5 /* of kept_rows.c */
#define BLOCKS_MAX 64
#define MAIN       1
#define DEVICE     2
#define DIM(x)     ((x) | 1ull << 32 | 1ull << 48)
#define COUNT(...) (sizeof(uint64_t[]){__VA_ARGS__} / sizeof(uint64_t))
#define ADD(type, begin, ns, id, text, ...)                                                        \
    builder_record(&b, DEVICE, type, begin, ns, id, COUNT(__VA_ARGS__),                            \
                   (const uint64_t[]){__VA_ARGS__}, text)

enum { WALK, PROCESSES, FUNCTIONS, NAMES, TEXTS };

/* What a file has, taken apart. */
struct block {
    unsigned table, columns;
    uint32_t rows;
    uint64_t *values[COLUMN_COLUMNS]; /* owned */
};

struct section {
    uint8_t *bytes; /* owned */
    size_t length;
};

struct image {
    struct block blocks[BLOCKS_MAX];
    unsigned block_count;
    struct section sections[SECTIONS];
};

static char folder[256];
static char *folders[] = {folder};
static struct recording rec;
static struct kept_rows kept = {.key = {{7, 8, 9}}, .count = 1};
static struct image truth;

/* ---- a recording ----------------------------------------------------------------------------- */

static void add_work(unsigned number)
{
    struct stream_builder b;
    uint64_t copy[5] = {1, 2, 1 << 20, 1, 0}, alloc[2] = {3, 64}, kernel[1] = {77};
    builder_init(&b, number);
    builder_api(&b);
    builder_thread(&b, MAIN, 50, b.header.pid, "python");
    if (number < 2)
        builder_thread(&b, DEVICE, 50, b.header.pid + 500, "gpuprof-gpu");
    builder_name(&b, MAIN, 60, 77, "relu");
    for (uint32_t i = 0; i < 200; i++) {
        uint64_t t = 1000 + 1000ull * i;
        if (number < 2)
            builder_correlated(&b, MAIN, API_CODE_cudaLaunchKernel, t, 200 + i, 3 * i + 1);
        else
            builder_call(&b, MAIN, API_CODE_cudaLaunchKernel, t, 200 + i, 0, 1, kernel);
        builder_call(&b, MAIN, API_CODE_cudaMalloc, t + 450, 100, i % 9 ? 0 : 2, 2, alloc);
        builder_call(&b, MAIN, API_CODE_cudaMemcpy, t + 600, 90, 0, 5, copy);
    }
    for (uint64_t i = 0; number < 2 && i < 200; i++) { /* the third one has calls alone */
        uint64_t t = 1500 + 1000 * i;
        ADD(RECORD_KERNEL, t, 300 + i, 3 * (uint32_t)i + 1, NULL, i % 2, 1, 7, 1 + i % 3, DIM(264),
            DIM(256), 32, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        ADD(RECORD_COPY, t + 10, 40, 0, NULL, i % 2, 1, 7, i % 11, 2, 3, 8000);
        ADD(RECORD_SYNC, t + 20, 50, 0, NULL, i % 6, 1, 7, 0);
        ADD(RECORD_OVERHEAD, t + 30, 20, 0, NULL, (i % 6) << 16, 1, b.header.pid, 0);
        ADD(RECORD_GRAPH, t + 40, 20, 0, NULL, i % 2, 1, 7, i % 4);
    }
    if (number < 2) { /* the third kernel has no name */
        ADD(RECORD_KERNEL_NAME, 300000, 0, 0, "_ZN2at6native13kernel_numberILi1EfEEvPT0_S2_i", 1);
        ADD(RECORD_KERNEL_NAME, 300001, 0, 0, "reduce", 2);
    }
    builder_finish(&b, "%s/%u.gpuprof", folder, number);
}

/* ---- files of columns ------------------------------------------------------------------------ */

static void load(struct image *image)
{
    struct column_reader *r;
    char path[300];
    snprintf(path, sizeof path, "%s.0", kept.path);
    assert_int_equal(column_reader_open(&r, path, &kept.key), COLUMN_FOUND);
    image->block_count = column_reader_blocks(r);
    assert_in_range(image->block_count, 3, BLOCKS_MAX);
    for (unsigned i = 0; i < image->block_count; i++) {
        struct column_block is = column_reader_block(r, i);
        struct block *b = &image->blocks[i];
        *b = (struct block){.table = is.table, .columns = is.columns, .rows = is.rows};
        for (unsigned c = 0; c < is.columns; c++) {
            b->values[c] = malloc(sizeof(uint64_t) * is.rows);
            assert_int_equal(column_reader_get(r, i, c, b->values[c]), 0);
        }
    }
    for (unsigned i = 0; i < SECTIONS; i++)
        assert_int_equal(column_reader_section(r, i, SIZE_MAX, &image->sections[i].bytes,
                                               &image->sections[i].length),
                         0);
    column_reader_close(r);
}

static void *copy_of(const void *bytes, size_t length)
{
    void *copy = malloc(length + 8);
    memcpy(copy, bytes ? bytes : "", bytes ? length : 0);
    return copy;
}

static struct image image_copy(void)
{
    struct image image = truth;
    for (unsigned i = 0; i < image.block_count; i++)
        for (unsigned c = 0; c < image.blocks[i].columns; c++)
            image.blocks[i].values[c] =
                copy_of(image.blocks[i].values[c], sizeof(uint64_t) * image.blocks[i].rows);
    for (unsigned i = 0; i < SECTIONS; i++)
        image.sections[i].bytes = copy_of(image.sections[i].bytes, image.sections[i].length);
    return image;
}

static void image_release(struct image *image)
{
    for (unsigned i = 0; i < image->block_count; i++)
        for (unsigned c = 0; c < COLUMN_COLUMNS; c++)
            free(image->blocks[i].values[c]);
    for (unsigned i = 0; i < SECTIONS; i++)
        free(image->sections[i].bytes);
}

/* Each block `times` times. */
static void store(const struct image *image, unsigned times)
{
    char path[300];
    int error;
    snprintf(path, sizeof path, "%s.0", kept.path);
    struct column_writer *w = column_writer_create(path, &kept.key, &error);
    for (unsigned i = 0; i < image->block_count * times; i++) {
        const struct block *b = &image->blocks[i % image->block_count];
        const uint64_t *columns[COLUMN_COLUMNS];
        for (unsigned c = 0; c < b->columns; c++)
            columns[c] = b->values[c] ? b->values[c] : b->values[0];
        assert_int_equal(column_writer_block(w, b->table, columns, b->columns, b->rows), 0);
    }
    for (unsigned i = 0; i < SECTIONS; i++)
        if (image->sections[i].length)
            assert_int_equal(
                column_writer_section(w, i, image->sections[i].bytes, image->sections[i].length),
                0);
    assert_int_equal(column_writer_end(w), 0);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static const struct report_view views[] = {
    {.tables = "functions,cuda_gpu_kern_sum,cuda_kern_exec_sum,gpu_time_util,cuda_gpu_mem_time_sum,"
               "cuda_gpu_mem_size_sum,cuda_gpu_graph_sum,cuda_sync_sum,overhead_sum,host_mem_sum,"
               "host_kernel_sum",
     .how.limit = ROWS_UNLIMITED},
    {.by = BY_THREAD, .tables = "calls_by_thread", .how.limit = ROWS_UNLIMITED},
    {.by = BY_GRID, .tables = "cuda_gpu_kern_sum", .how.limit = ROWS_UNLIMITED}};

#define VIEWS (sizeof views / sizeof views[0])

/* What it prints, to be freed; NULL: the file is refused. Without `from` the walk makes it, and
 * keeps rows. */
static char *ask(const struct report_view *view, struct kept_rows *from,
                 const struct select_wish *piece)
{
    struct report report;
    struct report_wish wish = {.by = view->by, .symbols = SYMBOLS_OFF, .kept = &kept};
    char *text = NULL;
    size_t length;
    if (from)
        wish.only = report_only(view, FORMAT_TEXT);
    int made = from ? report_make_kept(&report, &rec, &wish, piece)
                    : report_make(&report, &rec, &wish) == 0;
    if (made > 0) {
        FILE *out = open_memstream(&text, &length);
        assert_int_equal(report_print_text(&report, view, out), 0);
        fclose(out);
    }
    report_release(&report);
    return text;
}

static bool is_refused(const struct image *image, unsigned times)
{
    store(image, times);
    char *text = ask(&views[0], &kept, NULL);
    bool is_given = text;
    free(text);
    text = ask(&views[1], &kept, NULL);
    free(text);
    return !is_given;
}

static int set_up(void **state)
{
    (void)state;
    static char path[300];
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    snprintf(path, sizeof path, "%s/.gpuprof-rows", folder);
    kept.path = path;
    for (unsigned i = 0; i < 3; i++)
        add_work(i);
    const struct recording_options how = {.keep_live = true};
    assert_int_equal(recording_open(&rec, folders, 1, &how), 0);
    free(ask(&views[0], NULL, NULL));
    load(&truth);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    image_release(&truth);
    recording_release(&rec);
    scratch_remove(folder);
    return 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void the_same(void **state)
{
    (void)state;
    for (unsigned i = 0; i < VIEWS; i++) {
        char *told = ask(&views[i], NULL, NULL), *again = ask(&views[i], &kept, NULL);
        assert_string_equal(told, again);
        assert_true(strlen(told) > 200 && (i || strstr(told, "relu")));
        free(told);
        free(again);
    }
    store(&truth, 1); /* and taken apart and put together */
    char *told = ask(&views[0], NULL, NULL);
    store(&truth, 1);
    char *again = ask(&views[0], &kept, NULL);
    assert_string_equal(told, again);
    free(told);
    free(again);
}

/* The block of a table that it has. */
static struct block *block_of(struct image *image, unsigned table)
{
    for (unsigned i = 0; i < image->block_count; i++)
        if (image->blocks[i].table == table)
            return &image->blocks[i];
    fail();
    return NULL;
}

static void numbers_out_of_range(void **state)
{
    (void)state;
    static const struct {
        unsigned table, column;
    } places[] = {{ROWS_CALLS, ROW_TYPE},     {ROWS_WORK, ROW_TYPE},    {ROWS_OTHERS, ROW_TYPE},
                  {ROWS_CALLS, ROW_PROCESS},  {ROWS_WORK, ROW_PROCESS}, {ROWS_OTHERS, ROW_PROCESS},
                  {ROWS_CALLS, ROW_FUNCTION}, {ROWS_WORK, ROW_NAME},    {ROWS_CALLS, ROW_NAME}};
    static const uint64_t lies[] = {100000, UINT32_MAX, 1ull << 32, 1ull << 63, UINT64_MAX};
    for (unsigned i = 0; i < sizeof places / sizeof places[0] * 5; i++) {
        struct image image = image_copy();
        struct block *b = block_of(&image, places[i / 5].table);
        b->values[places[i / 5].column][b->rows / 2] = lies[i % 5];
        assert_true(is_refused(&image, 1));
        image_release(&image);
    }
}

static void wrong_shapes(void **state)
{
    (void)state;
    struct image image = image_copy();
    assert_false(is_refused(&image, 1));
    for (unsigned i = 0; i < SECTIONS; i++) {
        size_t length = image.sections[i].length;
        assert_true(length);
        image.sections[i].length = length - 1;
        assert_true(is_refused(&image, 1));
        image.sections[i].length = 0;
        assert_true(is_refused(&image, 1));
        image.sections[i].length = length;
    }
    image.blocks[0].table = ROW_TABLES;
    assert_true(is_refused(&image, 1));
    image.blocks[0].table = ROWS_CALLS;
    for (unsigned columns = 1; columns <= COLUMN_COLUMNS; columns++) {
        image.blocks[0].columns = columns;
        assert_int_equal(is_refused(&image, 1), columns != ROW_COLUMNS);
    }
    image.blocks[0].columns = ROW_COLUMNS;
    struct section *p = &image.sections[PROCESSES];
    memcpy(p->bytes, p->bytes + p->length / 3, p->length / 3); /* one twice */
    assert_true(is_refused(&image, 1));
    memcpy(p->bytes, truth.sections[PROCESSES].bytes, p->length);
    p->length = p->length / 3 * 2; /* one not at all */
    assert_true(is_refused(&image, 1));
    image_release(&image);
}

/* A file of a few kilobytes may not cost more than its recording. */
static void far_too_much(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SECTIONS; i++) {
        struct image image = image_copy();
        struct section *s = &image.sections[i];
        size_t item = i == NAMES ? s->length / 4 : s->length, length = s->length;
        s->length = 16u << 20;
        s->bytes = realloc(s->bytes, s->length);
        for (size_t at = length; at < s->length; at++)
            s->bytes[at] = i == NAMES || i == WALK ? 0 : s->bytes[at % item];
        if (i == TEXTS) /* more of them than names need mean nothing */
            is_refused(&image, 1);
        else
            assert_true(is_refused(&image, 1));
        image_release(&image);
    }
    assert_true(is_refused(&truth, 2000));
}

/* Numbers that are in none of the places where they are looked up mean what they are. */
static void extreme_sums(void **state)
{
    (void)state;
    for (unsigned c = ROW_BEGIN; c < ROW_COLUMNS; c++) {
        if (c == ROW_PROCESS || c == ROW_THREAD || c == ROW_NAME || c == ROW_FUNCTION)
            continue;
        for (unsigned k = 0; k < 2; k++) {
            uint64_t value = k * (UINT64_MAX - 1); /* nothing begins at the end of time */
            struct image image = image_copy();
            for (unsigned i = 0; i < image.block_count; i++)
                for (uint32_t row = 0; row < image.blocks[i].rows; row++)
                    image.blocks[i].values[c][row] = value;
            assert_false(is_refused(&image, 1));
            image_release(&image);
        }
    }
}

static uint64_t lie_of(uint64_t *state)
{
    static const uint64_t lies[] = {0,
                                    1,
                                    2,
                                    3,
                                    8,
                                    9,
                                    255,
                                    65536,
                                    UINT32_MAX,
                                    1ull << 32,
                                    1ull << 63,
                                    UINT64_MAX,
                                    UINT64_MAX - 1};
    uint64_t random = random_of(state);
    return random & 1 ? lies[(random >> 8) % (sizeof lies / sizeof lies[0])]
                      : random_of(state) >> random_of(state) % 64;
}

static void mutate_block(struct image *image, uint64_t *state)
{
    struct block *b = &image->blocks[random_of(state) % image->block_count];
    uint64_t random = random_of(state), lie = lie_of(state);
    uint64_t *column = b->values[(random >> 8) % b->columns];
    switch (random % 8) {
    case 0:
        for (uint32_t i = 0; column && i < b->rows; i++)
            column[i] = lie;
        break;
    case 1: b->table = (unsigned)(random >> 16) % COLUMN_TABLES; break;
    case 2: b->table = (unsigned)(random >> 16) % ROW_TABLES; break;
    case 3: b->rows = 1 + (uint32_t)(random >> 16) % b->rows; break;
    default:
        if (column)
            column[(random >> 16) % b->rows] = lie;
    }
}

static void mutate_section(struct image *image, uint64_t *state)
{
    struct section *s = &image->sections[random_of(state) % SECTIONS];
    uint64_t random = random_of(state), lie = lie_of(state);
    if (random % 8 == 0)
        s->length -= s->length ? random_of(state) % s->length : 0;
    else if (s->length >= 8 && random & 8)
        memcpy(s->bytes + (random >> 16) % (s->length / 8) * 8, &lie, 8);
    else if (s->length >= 8)
        memcpy(s->bytes + (random >> 16) % (s->length / 4) * 4, &lie, 4);
}

static void changed_at_random(void **state)
{
    (void)state;
    const char *wish = getenv("GPUPROF_TEST_MUTATIONS");
    unsigned count = wish ? (unsigned)atoi(wish) : MUTATIONS, given = 0;
    uint64_t random = 17;
    for (unsigned i = 0; i < count; i++) {
        struct image image = image_copy();
        const struct select_wish piece = {
            .is_given = true,
            .from = {.is_given = true, .ns = random_of(&random) % 200000},
            .to = {.is_given = random_of(&random) & 1, .ns = random_of(&random) % 300000}};
        for (uint64_t left = 1 + random_of(&random) % 3; left; left--)
            if (random_of(&random) & 1)
                mutate_block(&image, &random);
            else
                mutate_section(&image, &random);
        store(&image, 1);
        char *text = ask(&views[i % VIEWS], &kept, random_of(&random) & 1 ? &piece : NULL);
        given += text != NULL;
        free(text);
        image_release(&image);
    }
    assert_in_range(given, count / 20, count * 9 / 10);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_same),     TEST(numbers_out_of_range), TEST(wrong_shapes),
        TEST(far_too_much), TEST(extreme_sums),         TEST(changed_at_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
