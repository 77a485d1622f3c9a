/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of columns gives back what was written, or says clearly that it does not: torn at every
 * byte, changed in random places (GPUPROF_TEST_MUTATIONS: how many), written by one who is killed,
 * on a full disk, by somebody else, or at the same time as it is read.
 */
#include "unit_test.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "column_hostile.h"

#define SHAPES     9
#define MUTATIONS  2000
#define KILLS      40
#define READERS    2
#define IMAGE_MAX  65536
#define SECTION    7
#define LONG_BYTES (7 * COLUMN_PIECE_BYTES / 2)

static const struct column_key key = {{1, 2, 3, 250}};
static const struct column_key other_key = {{1, 2, 3, 251}};
static char folder[256], path[300];

static uint64_t next_value(unsigned shape, uint64_t before, uint32_t row, uint64_t *state)
{
    uint64_t random = random_of(state);
    switch (shape) {
    case 0: return random;                                /* anything */
    case 1: return before + random % 3000;                /* ascending */
    case 2: return (1ull << 60) + random % 200 * 1000003; /* few that differ */
    case 3: return before + random % 2001 - 1000;         /* a walk, also below 0 */
    case 4: return random % 16 ? UINT64_MAX : 0;          /* extremes */
    case 5: return UINT64_MAX - random % 5;               /* near the end */
    case 6: return row == 0 ? random : before;            /* a constant */
    case 7: return UINT64_MAX;                            /* ... that is extreme */
    default: return random_of(state) >> random % 64;      /* of all widths */
    }
}

struct plan {
    uint64_t state;
    unsigned blocks, columns_max;
    uint32_t rows_max;
    size_t section_bytes;
};

struct block_plan {
    unsigned table, columns;
    uint32_t rows;
};

static struct block_plan next_block(struct plan *p)
{
    uint64_t random = random_of(&p->state);
    uint32_t rows = random & 1   ? p->rows_max
                    : random & 2 ? 1
                                 : 1 + (uint32_t)(random >> 40) % p->rows_max;
    return (struct block_plan){random >> 8 & (COLUMN_TABLES - 1),
                               1 + (unsigned)(random >> 16) % p->columns_max, rows};
}

static void next_column(struct plan *p, uint64_t *values, uint32_t rows)
{
    unsigned shape = random_of(&p->state) % SHAPES;
    for (uint32_t i = 0; i < rows; i++)
        values[i] = next_value(shape, i ? values[i - 1] : 1ull << 40, i, &p->state);
}

static uint8_t section_byte(size_t i)
{
    return i < 2 * COLUMN_PIECE_BYTES ? (uint8_t)(i * i >> 7) : 0; /* zeros are hardly a byte */
}

static const struct plan small = {
    .state = 5, .blocks = 6, .columns_max = 5, .rows_max = 40, .section_bytes = 300};

static struct plan some(uint64_t seed)
{
    return (struct plan){.state = seed * 2654435761 + 1,
                         .blocks = 1 + (unsigned)seed % 5,
                         .columns_max = 4,
                         .rows_max = 2000,
                         .section_bytes = 100 + seed % 10000};
}

/* The seed, if there is one to be told, is the first eight bytes of section 0. */
static int write_plan(struct column_writer *w, struct plan p, uint64_t seed)
{
    static uint64_t values[COLUMN_COLUMNS][COLUMN_ROWS];
    const uint64_t *columns[COLUMN_COLUMNS];
    uint8_t bytes[1000];
    size_t at = 0;
    int error = column_writer_section(w, 0, &seed, sizeof seed);
    for (unsigned i = 0; i < p.blocks && error == 0; i++) {
        struct block_plan b = next_block(&p);
        for (unsigned c = 0; c < b.columns; c++) {
            next_column(&p, values[c], b.rows);
            columns[c] = values[c];
        }
        error = column_writer_block(w, b.table, columns, b.columns, b.rows);
        while (error == 0 && at < p.section_bytes * (i + 1) / p.blocks) { /* between the blocks */
            size_t length =
                p.section_bytes - at < sizeof bytes ? p.section_bytes - at : sizeof bytes;
            for (size_t k = 0; k < length; k++)
                bytes[k] = section_byte(at + k);
            error = column_writer_section(w, SECTION, bytes, length);
            at += length;
        }
    }
    return error;
}

static int write_file(struct plan p, uint64_t seed)
{
    int error = 0;
    struct column_writer *w = column_writer_create(path, &key, &error);
    if (!w)
        return error;
    error = write_plan(w, p, seed);
    if (error == 0)
        return column_writer_end(w);
    column_writer_drop(w);
    return error;
}

/* 0 and all is as the plan says, or an error of reading; 1: something is wrong. */
static int read_plan(struct column_reader *r, struct plan p)
{
    static uint64_t values[COLUMN_ROWS], wanted[COLUMN_ROWS];
    uint8_t *bytes;
    size_t length;
    if (column_reader_blocks(r) != p.blocks)
        return 1;
    for (unsigned i = 0; i < p.blocks; i++) {
        struct block_plan b = next_block(&p);
        struct column_block is = column_reader_block(r, i);
        if (is.table != b.table || is.columns != b.columns || is.rows != b.rows)
            return 1;
        for (unsigned c = 0; c < b.columns; c++) {
            uint64_t min = UINT64_MAX, max = 0;
            next_column(&p, wanted, b.rows);
            for (uint32_t row = 0; row < b.rows; row++) {
                min = wanted[row] < min ? wanted[row] : min;
                max = wanted[row] > max ? wanted[row] : max;
            }
            int error = column_reader_get(r, i, c, values);
            if (error < 0)
                return error;
            if (is.min[c] != min || is.max[c] != max ||
                memcmp(values, wanted, b.rows * sizeof *values) != 0)
                return 1;
        }
    }
    int error = column_reader_section(r, SECTION, p.section_bytes, &bytes, &length);
    bool is_right = length == p.section_bytes;
    for (size_t i = 0; i < length && is_right; i++)
        is_right = bytes[i] == section_byte(i);
    free(bytes);
    return error < 0 ? error : !is_right;
}

static enum column_found read_file(struct plan p, int *result)
{
    struct column_reader *r;
    enum column_found found = column_reader_open(&r, path, &key);
    if (found == COLUMN_FOUND)
        *result = read_plan(r, p);
    else if (r)
        *result = 1;
    column_reader_close(r);
    return found;
}

static size_t load(uint8_t *image)
{
    int fd = open(path, O_RDONLY);
    ssize_t size = read(fd, image, IMAGE_MAX);
    close(fd);
    assert_in_range(size, COLUMN_HEADER_BYTES, IMAGE_MAX - 1);
    return (size_t)size;
}

/* Not truncated first: closing a file after that makes some file systems write it to disk. */
static void store(const uint8_t *image, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT, 0600);
    assert_int_equal(write(fd, image, size), size);
    assert_int_equal(ftruncate(fd, (off_t)size), 0);
    close(fd);
}

static unsigned names_in_folder(void)
{
    unsigned count = 0;
    DIR *dir = opendir(folder);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "%s", scratch_folder());
    snprintf(path, sizeof path, "%s/columns", folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    scratch_remove(folder);
    return 0;
}

static void all_shapes(void **state)
{
    (void)state;
    const struct plan plans[] = {
        {.state = 1, .blocks = 40, .columns_max = COLUMN_COLUMNS, .rows_max = 300},
        {.state = 2,
         .blocks = 6,
         .columns_max = 12,
         .rows_max = COLUMN_ROWS,
         .section_bytes = LONG_BYTES},
        {.state = 3, .blocks = 90, .columns_max = 9, .rows_max = 1, .section_bytes = 1},
        {.state = 4, .blocks = 0, .columns_max = 1, .rows_max = 1},
    };
    struct stat status;
    for (unsigned i = 0; i < sizeof plans / sizeof *plans; i++) {
        int result = 1;
        assert_int_equal(write_file(plans[i], i), 0);
        assert_int_equal(read_file(plans[i], &result), COLUMN_FOUND);
        assert_int_equal(result, 0);
    }
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(names_in_folder(), 1);
}

/* A column of a block that hardly varies costs its head alone, and a narrow one a byte a row. */
static void small_where_it_can_be(void **state)
{
    (void)state;
    static uint64_t same[COLUMN_ROWS], narrow[COLUMN_ROWS];
    const uint64_t *columns[] = {same, narrow};
    uint64_t random = 9;
    struct stat status[2];
    for (uint32_t i = 0; i < COLUMN_ROWS; i++) {
        same[i] = UINT64_MAX / 3;
        narrow[i] = (1ull << 50) + random_of(&random) % 256;
    }
    for (unsigned count = 1; count <= 2; count++) {
        int error;
        struct column_writer *w = column_writer_create(path, &key, &error);
        assert_int_equal(column_writer_block(w, 3, columns, count, COLUMN_ROWS), 0);
        assert_int_equal(column_writer_end(w), 0);
        assert_int_equal(stat(path, &status[count - 1]), 0);
    }
    assert_in_range(status[0].st_size, 1, 150);
    assert_in_range(status[1].st_size, COLUMN_ROWS, COLUMN_ROWS + 250);
}

static void torn_anywhere(void **state)
{
    (void)state;
    static uint8_t image[IMAGE_MAX];
    int result = 1;
    assert_int_equal(write_file(small, 0), 0);
    size_t size = load(image);
    for (size_t cut = 0; cut < size; cut++) {
        store(image, cut);
        assert_int_equal(read_file(small, &result), COLUMN_DAMAGED);
    }
    image[size] = 0;
    store(image, size + 1);
    assert_int_equal(read_file(small, &result), COLUMN_DAMAGED);
    store(image, size);
    assert_int_equal(read_file(small, &result), COLUMN_FOUND);
    assert_int_equal(result, 0);
}

/* One to four changes: of a bit, of a word, of bytes that come from elsewhere in the file. */
static void mutate(uint8_t *image, size_t *size, uint64_t *state)
{
    for (uint64_t left = 1 + random_of(state) % 4; left && *size > 8; left--) {
        uint64_t random = random_of(state);
        size_t at = (size_t)(random >> 16) % (*size - 8),
               from = (size_t)(random >> 32) % (*size - 8);
        switch (random % 5) {
        case 0: image[at] ^= (uint8_t)(1u << (random >> 8 & 7)); break;
        case 1: store_u64(image + at / 8 * 8, random_of(state) >> random_of(state) % 64); break;
        case 2: image[at] = (uint8_t)(random >> 8); break;
        case 3: memmove(image + at, image + from, 1 + (random >> 8 & 7)); break;
        default: *size -= random >> 8 & 7 ? 0 : *size - at; break;
        }
    }
}

static void changed_anywhere(void **state)
{
    (void)state;
    static uint8_t image[IMAGE_MAX], changed[IMAGE_MAX];
    const char *wish = getenv("GPUPROF_TEST_MUTATIONS");
    unsigned count = wish ? (unsigned)atoi(wish) : MUTATIONS, noticed = 0;
    uint64_t random = 11;
    assert_int_equal(write_file(small, 0), 0);
    size_t whole = load(image);
    for (unsigned i = 0; i < count; i++) {
        size_t size = whole;
        int result = 0;
        memcpy(changed, image, size);
        mutate(changed, &size, &random);
        store(changed, size);
        bool is_same = size == whole && memcmp(changed, image, size) == 0;
        enum column_found found = read_file(small, &result);
        assert_true(found != COLUMN_ABSENT && result <= 0);
        assert_false(is_same && (found != COLUMN_FOUND || result));
        noticed += found != COLUMN_FOUND || result;
        column_repair(changed, size, &key);
        store(changed, size);
        column_read_all(path, &key);
    }
    assert_in_range(noticed, count * 9 / 10, count);
}

/* A file made by hand, after formats/column-file.md: one column of two rows, from 5 to 9. */
static enum column_found read_made(const uint64_t *words, size_t count, const uint8_t *column,
                                   size_t length, int *result)
{
    static uint8_t image[4096];
    static uint64_t values[COLUMN_ROWS];
    struct column_reader *r;
    size_t size = COLUMN_HEADER_BYTES;
    memcpy(image + size, column, length);
    size += length;
    store_u64(image + COLUMN_AT_DIRECTORY, size);
    for (size_t i = 0; i < count; i++, size += 8)
        store_u64(image + size, words[i]);
    column_repair(image, size, &key);
    store(image, size);
    enum column_found found = column_reader_open(&r, path, &key);
    *result = r && column_reader_blocks(r) ? column_reader_get(r, 0, 0, values) : 1;
    if (r && *result == 0)
        *result = values[0] == 5 && values[1] == 9 ? 0 : 1;
    column_reader_close(r);
    return found;
}

#define ENTRY(number, parts, rows) (number) | (uint64_t)(parts) << 16 | (uint64_t)(rows) << 32
#define LENGTH(stored, packed)     (stored) | (uint64_t)(packed) << 32

static const uint8_t planes[] = {1, 1, 0, 4};

/* With each of these values in the place of one of the six words. */
static void refuses(uint64_t *words, unsigned word, const uint64_t *lies, size_t count)
{
    uint64_t truth = words[word];
    int result;
    for (size_t i = 0; i < count; i++) {
        words[word] = lies[i];
        assert_int_equal(read_made(words, 6, planes, sizeof planes, &result), COLUMN_DAMAGED);
    }
    words[word] = truth;
}

#define REFUSES(word, ...)                                                                         \
    refuses(words, word, (const uint64_t[]){__VA_ARGS__},                                          \
            sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

static void made_by_hand(void **state)
{
    (void)state;
    static const struct {
        uint8_t bytes[12];
        size_t length;
        int result;
    } columns[] = {
        {{1, 1, 0, 4}, 4, 0},                                        /* PLANES */
        {{2, 1, 0, 8}, 4, 0},                                        /* DELTA */
        {{3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4}, 12, 0},               /* INCREASE */
        {{1, 1, 0, 5}, 4, GPUPROF_DAMAGED},                          /* above the maximum */
        {{2, 1, 1, 8}, 4, GPUPROF_DAMAGED},                          /* below the minimum */
        {{1, 1, 0, 4, 0}, 5, GPUPROF_DAMAGED},                       /* more than is needed */
        {{1, 2, 0, 4}, 4, GPUPROF_DAMAGED},                          /* less */
        {{0, 8, 4}, 10, GPUPROF_DAMAGED},                            /* CONST */
        {{6, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 4}, 12, GPUPROF_DAMAGED}, /* FOLLOW */
        {{7, 0, 1, 4}, 11, GPUPROF_DAMAGED},                         /* MAP */
        {{8, 1, 0, 4}, 4, GPUPROF_DAMAGED},
    };
    uint64_t words[7] = {ENTRY(0, 1, 2), COLUMN_HEADER_BYTES, 5, 9, LENGTH(4, 4)};
    int result;
    for (unsigned i = 0; i < sizeof columns / sizeof *columns; i++) {
        words[4] = LENGTH(columns[i].length, columns[i].length);
        assert_int_equal(read_made(words, 6, columns[i].bytes, columns[i].length, &result),
                         COLUMN_FOUND);
        assert_int_equal(result, columns[i].result);
    }
    words[4] = LENGTH(4, 4);
    REFUSES(0, ENTRY(COLUMN_TABLES, 1, 2), ENTRY(COLUMN_TABLES + COLUMN_SECTIONS, 1, 0),
            ENTRY(UINT16_MAX, 1, 0), ENTRY(0, 0, 2), ENTRY(0, 2, 2), ENTRY(0, UINT16_MAX, 2),
            ENTRY(0, 1, 0), ENTRY(0, 1, COLUMN_ROWS + 1), ENTRY(0, 1, UINT32_MAX));
    REFUSES(1, COLUMN_HEADER_BYTES - 1, COLUMN_HEADER_BYTES + 1, UINT64_MAX);
    REFUSES(2, 10, 9); /* a minimum above the maximum; a constant that has bytes */
    /* None without any; shorter than unpacked; into the directory; more than two rows take. */
    REFUSES(4, 0, LENGTH(0, 4), LENGTH(4, 3), LENGTH(5, 5), LENGTH(4, 8 * 2 + 11), UINT64_MAX);
    for (unsigned count = 1; count < 8; count += count == 5 ? 2 : 1) /* of words */
        assert_int_equal(read_made(words, count, planes, sizeof planes, &result), COLUMN_DAMAGED);
    uint64_t pieces[12] = {ENTRY(COLUMN_TABLES, 1, 0), COLUMN_HEADER_BYTES, 0, UINT64_MAX};
    memcpy(pieces + 6, pieces, 6 * sizeof *pieces);
    pieces[4] = LENGTH(4, 4 * COLUMN_PIECE_RATIO);
    assert_int_equal(read_made(pieces, 6, planes, 4, &result), COLUMN_FOUND);
    pieces[4] = LENGTH(4, 4 * COLUMN_PIECE_RATIO + 1);
    assert_int_equal(read_made(pieces, 6, planes, 4, &result), COLUMN_DAMAGED);
    pieces[4] = pieces[10] = LENGTH(2, 2);
    assert_int_equal(read_made(pieces, 12, planes, 4, &result), COLUMN_DAMAGED); /* one place */
    assert_int_equal(read_made(pieces, 6, planes, 4, &result), COLUMN_DAMAGED);  /* a gap */
    pieces[7] += 2;
    assert_int_equal(read_made(pieces, 12, planes, 4, &result), COLUMN_FOUND);
    uint64_t many[2 + 4 * (COLUMN_COLUMNS + 1)] = {ENTRY(0, COLUMN_COLUMNS + 1, 2),
                                                   COLUMN_HEADER_BYTES};
    assert_int_equal(read_made(many, sizeof many / sizeof *many, planes, 0, &result),
                     COLUMN_DAMAGED);
    many[0] = ENTRY(0, COLUMN_COLUMNS, 2);
    assert_int_equal(read_made(many, 2 + 4 * COLUMN_COLUMNS, planes, 0, &result), COLUMN_FOUND);
}

static void not_trusted(void **state)
{
    (void)state;
    static uint8_t image[IMAGE_MAX];
    struct column_reader *r;
    char link[320];
    snprintf(link, sizeof link, "%s/link", folder);
    assert_int_equal(column_reader_open(&r, path, &key), COLUMN_ABSENT);
    assert_int_equal(write_file(small, 0), 0);
    assert_int_equal(column_reader_open(&r, path, &other_key), COLUMN_STALE);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(column_reader_open(&r, link, &key), COLUMN_STALE);
    for (mode_t bit = S_IWGRP; bit; bit = bit == S_IWGRP ? S_IWOTH : 0) {
        chmod(path, 0600 | bit);
        assert_int_equal(column_reader_open(&r, path, &key), COLUMN_STALE);
    }
    chmod(path, 0644);
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1, 1), 0);
        assert_int_equal(column_reader_open(&r, path, &key), COLUMN_STALE);
        assert_int_equal(chown(path, 0, 0), 0);
    }
    assert_int_equal(column_reader_open(&r, path, &key), COLUMN_FOUND);
    column_reader_close(r);
    size_t size = load(image);
    image[COLUMN_AT_VERSION]++;
    store(image, size);
    assert_int_equal(column_reader_open(&r, path, &key), COLUMN_STALE);
    assert_int_equal(column_reader_open(&r, folder, &key), COLUMN_STALE);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(column_reader_open(&r, path, &key), COLUMN_STALE); /* and does not wait */
    assert_null(r);
}

static void limit_files(rlim_t bytes)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = bytes < limit.rlim_max ? bytes : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

/* At any size that the file may not exceed, what was there before stays, and nothing beside it,
 * also if there is room again when the file ends. */
static void full_disk(void **state)
{
    (void)state;
    static const struct plan large = {
        .state = 8, .blocks = 4, .columns_max = 4, .rows_max = 4000, .section_bytes = LONG_BYTES};
    unsigned failures = 0;
    int result = 1, error = GPUPROF_IO;
    assert_int_equal(write_file(small, 0), 0);
    signal(SIGXFSZ, SIG_IGN);
    for (rlim_t size = 0; error < 0; size += 1 + size / 3) {
        limit_files(size);
        struct column_writer *w = column_writer_create(path, &key, &error);
        error = w ? write_plan(w, large, 0) : error;
        int reason = errno;
        if (error == 0 && (error = column_writer_end(w)) < 0) {
            reason = errno;
            w = NULL;
        }
        limit_files(RLIM_INFINITY);
        if (error == 0)
            break;
        if (w && ++failures % 2)
            assert_int_equal(column_writer_end(w), error);
        else
            column_writer_drop(w);
        assert_int_equal(error, GPUPROF_IO);
        assert_int_equal(reason, EFBIG);
        assert_int_equal(names_in_folder(), 1);
        assert_int_equal(read_file(small, &result), COLUMN_FOUND);
        assert_int_equal(result, 0);
    }
    signal(SIGXFSZ, SIG_DFL);
    assert_in_range(failures, 5, 100);
    assert_int_equal(read_file(large, &result), COLUMN_FOUND); /* there was room at last */
    assert_int_equal(result, 0);
    char missing[320];
    snprintf(missing, sizeof missing, "%s/none/columns", folder);
    assert_null(column_writer_create(missing, &key, &error));
    assert_int_equal(error, GPUPROF_IO);
    column_writer_drop(NULL);
}

/* Writes one file after the other, each by another seed. */
static void write_on(uint64_t seed, uint64_t count)
{
    for (; count; count--, seed++)
        if (write_file(some(seed), seed) < 0)
            _exit(1);
}

/* Is the file as some seed says? Without one there may be none. */
static bool is_as_some(bool must_be)
{
    struct column_reader *r;
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint64_t seed;
    enum column_found found = column_reader_open(&r, path, &key);
    if (found != COLUMN_FOUND)
        return found == COLUMN_ABSENT && !must_be;
    bool is_right =
        column_reader_section(r, 0, sizeof seed, &bytes, &length) == 0 && length == sizeof seed;
    memcpy(&seed, is_right ? bytes : (uint8_t *)&seed, sizeof seed);
    is_right = is_right && read_plan(r, some(seed)) == 0;
    free(bytes);
    column_reader_close(r);
    return is_right;
}

static void killed_at_any_moment(void **state)
{
    (void)state;
    uint64_t random = 13;
    bool is_there = false;
    for (unsigned i = 0; i < KILLS; i++) {
        pid_t child = fork();
        if (child == 0) {
            write_on(100 * i, UINT64_MAX);
            _exit(1);
        }
        usleep((useconds_t)(random_of(&random) % 4000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        assert_true(is_as_some(is_there));
        is_there = access(path, F_OK) == 0;
    }
    assert_true(is_there);
}

static void read_while_written(void **state)
{
    (void)state;
    pid_t children[READERS];
    int status;
    write_on(0, 1);
    for (unsigned i = 0; i < READERS; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            bool is_right = true;
            for (unsigned k = 0; k < 100 && is_right; k++)
                is_right = is_as_some(true);
            _exit(!is_right);
        }
    }
    for (unsigned ended = 0; ended < READERS;) {
        static uint64_t seed;
        write_on(++seed, 1);
        pid_t child = waitpid(-1, &status, WNOHANG);
        assert_true(child >= 0);
        ended += child > 0;
        assert_true(child == 0 || status == 0);
    }
    assert_int_equal(names_in_folder(), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(all_shapes),       TEST(small_where_it_can_be), TEST(torn_anywhere),
        TEST(changed_anywhere), TEST(made_by_hand),          TEST(not_trusted),
        TEST(full_disk),        TEST(killed_at_any_moment),  TEST(read_while_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
