/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/kept_rows.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sha256.h"
#include "base/workers.h"
#include "block.h"
#include "error.h"
#include "store/column_file.h"

#define NAME ".gpuprof-rows"

/* Of a column file. */
enum section { SECTION_WALK, SECTION_PROCESSES, SECTION_FUNCTIONS, SECTION_NAMES, SECTION_TEXTS };

struct kept_walk {
    uint32_t index, count; /* of the files */
    uint64_t origin_ns;
    uint64_t kernels_dropped, texts_dropped;
};

struct kept_process {
    uint8_t id[16];
    uint32_t thread_count;
    uint64_t first_ns, last_ns;
    struct losses losses;
};

/* Its texts stand in SECTION_TEXTS, behind those of the names before. */
struct kept_name {
    uint32_t bytes;
    uint32_t maker;
    uint32_t maker_function; /* its number + 1; 0: none */
    uint32_t maker_bytes;
};

/* ---- where it is ----------------------------------------------------------------------------- */

static bool add_file(struct sha256 *hash, const char *path, struct stat *status)
{
    struct stat s;
    if (stat(path, &s) < 0)
        return false;
    *status = s;
    const uint64_t facts[] = {s.st_dev, s.st_ino, (uint64_t)s.st_size, (uint64_t)s.st_mtim.tv_sec,
                              (uint64_t)s.st_mtim.tv_nsec};
    sha256_add(hash, facts, sizeof facts);
    return true;
}

/* Its file, and what loading found: part of it may stand in a live file elsewhere, which goes. A
 * file that grew since then, or was put together here, is not what is on the disk. */
static bool add_process(struct sha256 *hash, const struct process *p)
{
    struct stat status;
    const uint64_t found[] = {p->block_count, p->record_count, p->end_reason, p->live.count};
    sha256_add(hash, found, sizeof found);
    sha256_add(hash, &p->losses, sizeof p->losses);
    return add_file(hash, p->file.path, &status) && (uint64_t)status.st_size == p->file.size;
}

bool kept_rows_is_large(const struct recording *rec)
{
    uint64_t records = 0;
    bool has_ended = true;
    for (uint32_t i = 0; i < rec->count; i++) {
        records += rec->processes[i]->record_count;
        has_ended &= !process_runs(rec->processes[i]);
    }
    return has_ended && records >= KEPT_RECORDS;
}

void kept_rows_find(struct kept_rows *k, const struct recording *rec, const struct options *options)
{
    struct stat status;
    struct sha256 hash;
    char text[SHA256_BASE64_BYTES];
    *k = (struct kept_rows){.count = 1};
    if (options->no_index || options->path_count != 1 || rec->unread_files || rec->left_out ||
        stat(options->paths[0], &status) < 0 || !S_ISDIR(status.st_mode))
        return;
    sha256_init(&hash);
    bool is_there = add_file(&hash, "/proc/self/exe", &status);
    sha256_add(&hash, &options->clock, sizeof options->clock);
    for (uint32_t i = 0; is_there && i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        is_there = add_process(&hash, p);
    }
    _Static_assert(COLUMN_KEY < sizeof text, "the key is most of the hash");
    memcpy(k->key.bytes, sha256_base64(&hash, text), COLUMN_KEY);
    if (!is_there || !kept_rows_is_large(rec) ||
        asprintf(&k->path, "%s/" NAME, options->paths[0]) < 0)
        k->path = NULL;
}

void kept_rows_release(struct kept_rows *k)
{
    free(k->path);
    k->path = NULL;
}

/* Returns `path`, of PATH_MAX. */
static const char *path_of(const struct kept_rows *k, uint32_t index, char *path)
{
    return snprintf(path, PATH_MAX, "%s.%u", k->path, index) < PATH_MAX ? path : "";
}

/* ---- writing --------------------------------------------------------------------------------- */

void kept_rows_write(struct kept_rows *k, struct resolver *r)
{
    char path[PATH_MAX];
    int error;
    if (k->path && !k->is_only_read)
        r->keeps = column_writer_create(path_of(k, k->index, path), &k->key, &error);
}

static int put_names(struct column_writer *w, const struct resolver *r)
{
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < r->name_count; i++) {
        const struct row_name *n = &r->names[i];
        struct kept_name kept = {.bytes = n->name->raw_bytes,
                                 .maker = n->maker,
                                 .maker_function =
                                     n->maker_function ? n->maker_function->index + 1 : 0,
                                 .maker_bytes = n->maker_text ? n->maker_text->raw_bytes : 0};
        error = column_writer_section(w, SECTION_NAMES, &kept, sizeof kept);
        if (error == 0)
            error = column_writer_section(w, SECTION_TEXTS, n->name->raw, kept.bytes);
        if (error == 0 && kept.maker_bytes)
            error = column_writer_section(w, SECTION_TEXTS, n->maker_text->raw, kept.maker_bytes);
    }
    return error;
}

static int put_walk(struct column_writer *w, const struct kept_rows *k, const struct walk *walk)
{
    const struct recording *rec = walk->rec;
    const struct function_table *functions = &rec->reader.functions;
    const struct kept_walk kept = {k->index, k->count, walk->survey.origin_ns,
                                   walk->kernels.dropped, walk->texts.dropped};
    int error = column_writer_section(w, SECTION_WALK, &kept, sizeof kept);
    for (uint32_t i = 0; error == 0 && i < rec->count; i++) {
        const struct process *p = rec->processes[i];
        struct kept_process process = {.thread_count = p->thread_count,
                                       .first_ns = walk->first_ns[i],
                                       .last_ns = walk->last_ns[i],
                                       .losses = walk->losses[i]};
        memcpy(process.id, p->header.process_id, sizeof process.id);
        error = column_writer_section(w, SECTION_PROCESSES, &process, sizeof process);
    }
    for (uint32_t i = 0; error == 0 && i < functions->count; i++) {
        const char *text = functions->functions[i]->description;
        error = column_writer_section(w, SECTION_FUNCTIONS, text, strlen(text) + 1);
    }
    return error;
}

void kept_rows_finish(const struct kept_rows *k, struct resolver *r)
{
    char path[PATH_MAX];
    struct column_writer *w = r->keeps;
    r->keeps = NULL;
    if (!w || put_walk(w, k, r->walk) < 0 || put_names(w, r) < 0) {
        column_writer_drop(w);
        return;
    }
    column_writer_end(w);
    /* Of a report with more workers. */
    for (uint32_t i = k->count; k->index == 0 && i < WORKERS_MAX; i++)
        if (unlink(path_of(k, i, path)) < 0)
            break;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* What all files have together, which are taken for hostile. */
struct kept_reading {
    struct resolver *r;
    uint32_t file_count;    /* 0: not known yet */
    bool *are_there;        /* owned; by process index: a file has it */
    uint32_t process_count; /* of these */
    uint64_t rows, rows_max;
};

/* A file, and what its numbers mean here. */
struct kept_file {
    struct column_reader *reader;
    uint32_t *processes; /* owned, and so are the next ones; by its number: ours */
    uint32_t process_count;
    uint32_t *threads;
    uint32_t thread_count;
    uint32_t *functions;
    uint32_t function_count;
    uint32_t names_from; /* its first name is the resolver's name of that number, + 1 */
    uint32_t name_count;
};

static void close_file(struct kept_file *f)
{
    column_reader_close(f->reader);
    free(f->processes);
    free(f->threads);
    free(f->functions);
}

/* A section of items of one size; *count of them, at most `most`. NULL: there are none, or more, or
 * an error. */
static void *items_of(struct kept_file *f, enum section section, size_t item_bytes, uint64_t most,
                      uint32_t *count)
{
    uint8_t *bytes;
    size_t length, room = most < UINT32_MAX ? most * item_bytes : UINT32_MAX * item_bytes;
    *count = 0;
    if (column_reader_section(f->reader, section, room, &bytes, &length) < 0)
        return NULL;
    if (length % item_bytes) {
        free(bytes);
        return NULL;
    }
    *count = (uint32_t)(length / item_bytes);
    return bytes;
}

/* Mostly it is the one at `from`. */
static const struct process *find_process(const struct recording *rec, const uint8_t *id,
                                          uint32_t from)
{
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct process *p = rec->processes[((uint64_t)from + i) % rec->count];
        if (memcmp(p->header.process_id, id, sizeof p->header.process_id) == 0)
            return p;
    }
    return NULL;
}

/* Which processes and threads they are, and what the walk knew of them. No other file has them. */
static bool read_processes(struct kept_file *f, struct kept_reading *all)
{
    struct walk *walk = all->r->walk;
    const struct process *p = NULL;
    uint32_t count;
    struct kept_process *list =
        items_of(f, SECTION_PROCESSES, sizeof *list, walk->rec->count, &count);
    f->processes = calloc(count + 1u, sizeof *f->processes);
    f->threads = calloc(walk->rec->thread_count + 1u, sizeof *f->threads);
    bool is_good = (list || !count) && f->processes && f->threads;
    for (uint32_t i = 0; is_good && i < count; i++) {
        p = find_process(walk->rec, list[i].id, p ? p->index + 1 : 0);
        is_good = p && p->thread_count == list[i].thread_count && !all->are_there[p->index];
        if (!is_good)
            break;
        all->are_there[p->index] = true;
        all->process_count++;
        for (uint32_t t = 0; t < p->thread_count; t++)
            f->threads[f->thread_count++] = p->first_thread + t;
        f->processes[f->process_count++] = p->index;
        walk->first_ns[p->index] = list[i].first_ns;
        walk->last_ns[p->index] = list[i].last_ns;
        walk->losses[p->index] = list[i].losses;
    }
    free(list);
    return is_good;
}

static uint64_t functions_bytes(const struct function_table *functions)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < functions->count; i++)
        bytes += strlen(functions->functions[i]->description) + 1;
    return bytes;
}

/* Mostly they are in the same order. */
static bool read_functions(struct kept_file *f, const struct recording *rec)
{
    const struct function_table *ours = &rec->reader.functions;
    uint32_t length, next = 0;
    char *texts = items_of(f, SECTION_FUNCTIONS, 1, functions_bytes(ours), &length);
    bool is_good = texts && length && !texts[length - 1];
    f->functions = calloc(ours->count + 1u, sizeof *f->functions);
    is_good = is_good && f->functions;
    for (const char *text = texts; is_good && text < texts + length; text += strlen(text) + 1) {
        uint32_t tried = 0;
        while (tried < ours->count &&
               strcmp(ours->functions[next % ours->count]->description, text) != 0)
            next++, tried++;
        is_good = tried < ours->count && f->function_count < ours->count;
        if (is_good)
            f->functions[f->function_count++] = next++ % ours->count;
    }
    free(texts);
    return is_good;
}

/* The next text of so many bytes; NULL: none. False: there is not as much, or no memory. */
static bool take_text(struct kernel_names *names, const uint8_t *texts, size_t length, size_t *at,
                      uint32_t bytes, const struct kernel_name **name)
{
    *name = NULL;
    if (bytes > length - *at)
        return false;
    *at += bytes;
    return !bytes || (kernel_name_intern(names, texts + *at - bytes, bytes, name) == 0 && *name);
}

static bool take_name(const struct kept_file *f, struct resolver *r, const struct kept_name *kept,
                      const uint8_t *texts, size_t length, size_t *at)
{
    const struct recording *rec = r->walk->rec;
    struct row_name name = {.maker = kept->maker};
    if (kept->maker_function > f->function_count ||
        !take_text(&r->walk->kernels, texts, length, at, kept->bytes, &name.name) ||
        !take_text(&r->walk->texts, texts, length, at, kept->maker_bytes, &name.maker_text) ||
        !name.name)
        return false;
    if (kept->maker_function)
        name.maker_function =
            rec->reader.functions.functions[f->functions[kept->maker_function - 1]];
    r->names[r->name_count++] = name;
    return true;
}

static bool read_names(struct kept_file *f, struct resolver *r)
{
    uint32_t length, room = r->walk->kernels.handles_max;
    uint64_t text_max = r->walk->kernels.text_max + r->walk->texts.text_max;
    size_t at = 0;
    struct kept_name *list =
        items_of(f, SECTION_NAMES, sizeof *list, room > r->name_count ? room - r->name_count : 0,
                 &f->name_count);
    uint8_t *texts = items_of(f, SECTION_TEXTS, 1, text_max, &length);
    struct row_name *names =
        realloc(r->names, ((size_t)r->name_count + f->name_count + 1u) * sizeof *names);
    bool is_good = names && (list || !f->name_count) && (texts || !length);
    r->names = names ? names : r->names;
    f->names_from = r->name_count;
    for (uint32_t i = 0; is_good && i < f->name_count; i++)
        is_good = take_name(f, r, &list[i], texts, length, &at);
    free(list);
    free(texts);
    return is_good;
}

/* False: it is not there, or not as it should be. */
static bool open_file(struct kept_file *f, const struct kept_rows *k, uint32_t index,
                      struct kept_reading *all)
{
    char path[PATH_MAX];
    struct walk *walk = all->r->walk;
    uint64_t *origin_ns = &walk->survey.origin_ns;
    uint32_t walks;
    *f = (struct kept_file){0};
    if (column_reader_open(&f->reader, path_of(k, index, path), &k->key) != COLUMN_FOUND)
        return false;
    struct kept_walk *kept = items_of(f, SECTION_WALK, sizeof *kept, 1, &walks);
    bool is_good = walks == 1 && kept->index == index && kept->count > index &&
                   kept->count <= WORKERS_MAX &&
                   (!all->file_count || kept->count == all->file_count);
    if (is_good) {
        all->file_count = kept->count;
        if (kept->origin_ns && (!*origin_ns || kept->origin_ns < *origin_ns))
            *origin_ns = kept->origin_ns;
        walk->kernels.dropped |= kept->kernels_dropped;
        walk->texts.dropped |= kept->texts_dropped;
    }
    free(kept);
    return is_good && read_processes(f, all) && read_functions(f, walk->rec) &&
           read_names(f, all->r);
}

/* Numbers of that file become ours. False: there are no such. */
static bool translate(uint64_t *values, uint32_t count, const uint32_t *ours, uint32_t our_count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] >= our_count)
            return false;
        values[i] = ours[values[i]];
    }
    return true;
}

static bool translate_names(uint64_t *values, uint32_t count, const struct kept_file *f)
{
    for (uint32_t i = 0; i < count; i++) {
        if (values[i] > f->name_count)
            return false;
        values[i] += values[i] ? f->names_from : 0;
    }
    return true;
}

/* The columns that somebody reads. 0 or an error. */
static int read_block(struct kept_file *f, uint32_t number, const struct column_block *block,
                      unsigned columns, struct rows *rows)
{
    int error = 0;
    rows->count = block->rows;
    for (unsigned c = 0; error == 0 && c < ROW_COLUMNS; c++)
        if (columns >> c & 1 && rows_has_column(rows->table, c))
            error = column_reader_get(f->reader, number, c, rows->columns[c]);
    bool is_good =
        error < 0 ||
        (translate(rows->columns[ROW_PROCESS], rows->count, f->processes, f->process_count) &&
         (!(columns >> ROW_NAME & 1) || translate_names(rows->columns[ROW_NAME], rows->count, f)) &&
         (!(columns >> ROW_THREAD & 1) || rows->table == ROWS_OTHERS ||
          translate(rows->columns[ROW_THREAD], rows->count, f->threads, f->thread_count)) &&
         (!(columns >> ROW_FUNCTION & 1) || rows->table != ROWS_CALLS ||
          translate(rows->columns[ROW_FUNCTION], rows->count, f->functions, f->function_count)));
    return is_good ? error : GPUPROF_DAMAGED;
}

/* Only those that begin in the piece stay. */
static void cut(struct rows *rows, const struct time_span *piece, unsigned columns)
{
    const uint64_t *begins = rows->columns[ROW_BEGIN];
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (begins[i] < piece->begin_ns || begins[i] >= piece->end_ns)
            continue;
        for (unsigned c = 0; c < ROW_COLUMNS; c++)
            if (columns >> c & 1 && rows_has_column(rows->table, c))
                rows->columns[c][count] = rows->columns[c][i];
        count++;
    }
    rows->count = count;
}

/* How many rows it gave its readers are in all->rows. */
static int read_file(struct kept_file *f, struct kept_reading *all, const struct time_span *piece)
{
    struct resolver *r = all->r;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < column_reader_blocks(f->reader); i++) {
        const struct column_block block = column_reader_block(f->reader, i);
        if (block.table >= ROW_TABLES || block.columns != ROW_COLUMNS ||
            block.max[ROW_TYPE] > ROW_OVERHEAD || block.rows > all->rows_max - all->rows)
            return GPUPROF_DAMAGED;
        struct rows *rows = &r->tables[block.table];
        unsigned columns =
            resolver_columns(r, block.table, block.min[ROW_TYPE], block.max[ROW_TYPE]);
        if (!columns || block.max[ROW_BEGIN] < piece->begin_ns ||
            block.min[ROW_BEGIN] >= piece->end_ns)
            continue;
        bool is_cut =
            block.min[ROW_BEGIN] < piece->begin_ns || block.max[ROW_BEGIN] >= piece->end_ns;
        columns |= is_cut ? 1u << ROW_BEGIN : 0;
        error = read_block(f, i, &block, columns, rows);
        if (error == 0 && is_cut)
            cut(rows, piece, columns);
        all->rows += error == 0 ? rows->count : 0;
        if (error == 0)
            error = resolver_hand_out(r, rows);
    }
    return error;
}

static uint64_t moment_ns(const struct select_moment *m, uint64_t origin_ns, uint64_t otherwise)
{
    if (!m->is_given || m->is_absolute)
        return m->is_given ? m->ns : otherwise;
    return origin_ns < UINT64_MAX - m->ns ? origin_ns + m->ns : UINT64_MAX;
}

/* A record has two rows at most: a work has one more where its call is found late. */
static uint64_t rows_max(const struct recording *rec)
{
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < rec->count; i++)
        blocks += rec->processes[i]->block_count;
    return 2 * blocks * BLOCK_RECORDS_MAX;
}

int64_t kept_rows_read(const struct kept_rows *k, struct resolver *r,
                       const struct select_wish *piece)
{
    const struct recording *rec = r->walk->rec;
    struct kept_file files[WORKERS_MAX];
    struct time_span span = {0, UINT64_MAX};
    uint32_t opened = 0;
    int error = 0;
    if (!k->path)
        return 0;
    struct kept_reading all = {.r = r,
                               .are_there = calloc(rec->count + 1u, sizeof *all.are_there),
                               .rows_max = rows_max(rec)};
    bool is_good = all.are_there;
    while (is_good && (opened == 0 || opened < all.file_count))
        is_good = open_file(&files[opened], k, opened, &all), opened++;
    is_good = is_good && all.process_count == rec->count;
    if (piece)
        span = (struct time_span){moment_ns(&piece->from, r->walk->survey.origin_ns, 0),
                                  moment_ns(&piece->to, r->walk->survey.origin_ns, UINT64_MAX)};
    for (uint32_t i = 0; piece && i < rec->count; i++) {
        struct losses *l = &r->walk->losses[i]; /* how many are of the piece nobody knows */
        l->gpu_unpaired = l->gpu_given_up = l->gpu_missing = l->gpu_pending = l->gpu_untied = 0;
    }
    for (uint32_t i = 0; is_good && error == 0 && i < opened; i++)
        error = read_file(&files[i], &all, &span);
    for (uint32_t i = 0; i < opened; i++)
        close_file(&files[i]);
    free(all.are_there);
    return error < 0 ? error : is_good ? (int64_t)all.rows : 0;
}
