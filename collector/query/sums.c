/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sums.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "read/process.h"

void sums_init(struct sums *s, const struct sums_info *info, struct walk *walk,
               uint64_t *histogram_rows)
{
    *s = (struct sums){.info = info,
                       .walk = walk,
                       .rec = walk->rec,
                       .rows_max = UINT32_MAX,
                       .histogram_rows = histogram_rows,
                       .texts = {.plain = true}};
    kernel_names_limit(&s->texts, recording_bytes(walk->rec));
    s->all = &s->whole[info->part_of];
    while (s->value_count < SUMS_VALUES && info->values[s->value_count])
        s->value_count++;
    uint64_t rows_max = SUMS_ROWS_FREE + recording_bytes(walk->rec) / SUMS_FILE_BYTES;
    if (info->rows_max)
        s->rows_max = (uint32_t)min_of(rows_max, info->rows_max);
}

static void free_durations(struct histogram *durations)
{
    if (durations)
        histogram_release(durations);
    free(durations);
}

void sums_release(struct sums *s)
{
    for (uint32_t i = 0; i < s->count; i++)
        free_durations(s->rows[i].durations);
    free(s->rows);
    free(s->values);
    free(s->function_of);
    key_map_release(&s->places);
    key_map_release(&s->groups_of);
    kernel_names_release(&s->texts);
}

static int sums_end(void *context)
{
    struct sums *s = context;
    int (*end)(void *) = s->info->consumer.end ? s->info->consumer.end : s->info->rows.end;
    int error = end ? end(s) : 0;
    if (error == 0)
        sums_finish(s);
    return error;
}

/* ---- resolved events ---- */

static int take_declared(void *context, const struct rows *rows)
{
    struct sums *s = context;
    const struct sums_from *from = &s->info->from;
    const uint64_t *types = rows->columns[ROW_TYPE], *keys = rows->columns[from->key];
    const uint64_t *ns = rows->columns[from->ns ? from->ns : ROW_NS];
    bool by_grid = s->by == BY_GRID && s->info->keys[1];
    for (uint32_t i = 0; i < rows->count; i++) {
        if (!(from->types >> types[i] & 1))
            continue;
        struct sums_row *row = sums_row(s, keys[i], by_grid ? rows->columns[ROW_GRID][i] : 0,
                                        by_grid ? rows->columns[ROW_BLOCK][i] : 0);
        uint64_t weight = rows->table == ROWS_CALLS ? rows->columns[ROW_WEIGHT][i] : 1;
        sums_count(s, row, ns[i], rows->columns[ROW_BYTES][i], weight);
    }
    return 0;
}

void sums_read_rows(struct sums *s, struct resolver *r)
{
    struct rows_reader reader = s->info->rows;
    if (!reader.take && s->info->from.types) {
        reader.tables = 1u << s->info->from.table;
        reader.take = take_declared;
    }
    reader.context = s;
    reader.end = sums_end;
    if (reader.take)
        resolver_add(r, &reader);
}

bool sums_has_consumer(const struct sums *s)
{
    const struct consumer *c = s->info ? &s->info->consumer : NULL;
    return c && (c->take || c->take_call || c->take_work);
}

struct consumer sums_consumer(struct sums *s)
{
    struct consumer c = s->info->consumer;
    c.context = s;
    c.end = sums_end;
    if (!recording_any(s->rec, process_expects_gpu))
        c.needs &= ~(unsigned)WALK_WORK;
    return c;
}

/* ---- rows ---- */

uint64_t sums_function(struct sums *s, const struct function *f)
{
    uint64_t *keys = array_reach(s->function_of, &s->function_of_count, f->index, sizeof *keys);
    s->function_of = keys;
    if (!keys[f->index])
        keys[f->index] = sums_text(s, f->name);
    return keys[f->index];
}

uint64_t sums_text(struct sums *s, const char *text)
{
    return sums_name_key(kernel_name_intern(&s->texts, text, strlen(text)));
}

/* Only before sorting: rows and values are in the same order. */
static void sums_grow(struct sums *s)
{
    array_grow(&s->rows, &s->capacity, sizeof *s->rows, 64);
    s->values = memory_resize(s->values, (size_t)s->capacity * s->value_count, sizeof *s->values);
    for (uint32_t i = 0; i < s->count; i++)
        s->rows[i].values = s->values + (size_t)i * s->value_count;
}

struct sums_row *sums_row_make(struct sums *s, struct key key)
{
    uint64_t place = key_map_get(&s->places, key);
    if (!place && s->count >= s->rows_max) {
        key = (struct key){SUMS_OTHERS, SUMS_OTHERS, SUMS_OTHERS};
        place = key_map_get(&s->places, key);
    }
    if (place)
        return &s->rows[place - 1];
    if (s->count == s->capacity)
        sums_grow(s);
    struct sums_row *row = &s->rows[s->count];
    *row = (struct sums_row){.keys = {key.a, key.b, key.c},
                             .values = s->values + (size_t)s->count * s->value_count};
    for (unsigned i = 0; i < s->value_count; i++)
        row->values[i] = s->info->values[i] == JOIN_LEAST ? UINT64_MAX : 0;
    row->durations = memory_new(s->info->has_durations, sizeof *row->durations);
    key_map_set(&s->places, key, ++s->count);
    return row;
}

const char *sums_name(const struct sums *s, const struct sums_row *row, unsigned key, char *text)
{
    if (sums_is_others(row))
        return key == 0 ? "(others)" : NULL;
    if (key == 0 && s->info->name)
        return s->info->name(s, row, text);
    if (key == 0 && s->info->number_name)
        return s->info->number_name(row->keys[0]);
    return s->info->keys[key] == KEY_TEXT ? sums_shown(row->keys[key]) : NULL;
}

/* Compares keys: texts alphabetically, none before any; numbers by size. */
static int compare_keys(const struct sums *s, const struct sums_row *a, const struct sums_row *b)
{
    char texts[2][SUMS_NAME_BYTES];
    int order = 0;
    for (unsigned i = 0; i < SUMS_KEYS && s->info->keys[i] && order == 0; i++) {
        const char *x = sums_name(s, a, i, texts[0]), *y = sums_name(s, b, i, texts[1]);
        if (x && y)
            order = strcmp(x, y);
        else
            order = x || y ? (x != NULL) - (y != NULL) : ORDER(a->keys[i], b->keys[i]);
    }
    return order;
}

static int sums_compare_rows(const void *left, const void *right, void *context)
{
    const struct sums *s = context;
    const struct sums_row *a = left, *b = right;
    int order = ORDER(!a->values[0], !b->values[0]);
    if (order == 0 && s->info->order != SUMS_BY_KEYS)
        order = ORDER(b->values[s->info->order], a->values[s->info->order]) *
                (s->info->values[s->info->order] == JOIN_LEAST ? -1 : 1);
    for (unsigned i = 0; i < sizeof s->info->then && s->info->then[i] && order == 0; i++)
        order = ORDER(b->values[s->info->then[i]], a->values[s->info->then[i]]);
    return order ? order : compare_keys(s, a, b);
}

static void sums_own_join(const struct sums_info *info, struct sums_row *into,
                          const uint64_t *values)
{
    bool is_taken = false;
    if (info->join)
        info->join(into->values, values);
    for (unsigned i = 0; i < SUMS_VALUES && info->values[i]; i++) {
        uint64_t *to = &into->values[i], from = values[i];
        enum sums_join how = info->values[i];
        if (how == JOIN_ADD)
            *to += from;
        if (how == JOIN_MOST || how == JOIN_LEAST)
            is_taken = how == JOIN_MOST ? from > *to : from < *to;
        if (how != JOIN_ADD && how != JOIN_OWN && is_taken)
            *to = from;
    }
}

void sums_row_add(struct sums *s, struct key key, const uint64_t *values)
{
    sums_own_join(s->info, sums_row(s, key.a, key.b, key.c), values);
}

void sums_join(struct sums *s, struct sums_row *into, struct sums_row *from)
{
    sums_own_join(s->info, into, from->values);
    if (from->durations)
        histogram_move(into->durations, from->durations, s->histogram_rows);
    memset(from->values, 0, s->value_count * sizeof *from->values);
}

void sums_remake(struct sums *s, sums_remake_fn *remake, void *context)
{
    struct sums_row *rows = s->rows;
    uint64_t *values = s->values;
    uint32_t count = s->count;
    s->rows = NULL;
    s->values = NULL;
    s->count = s->capacity = 0;
    key_map_release(&s->places);
    memset(s->recent, 0, sizeof s->recent);
    for (uint32_t i = 0; i < count; i++) {
        if (sums_is_others(&rows[i]))
            sums_join(s, sums_row(s, SUMS_OTHERS, SUMS_OTHERS, SUMS_OTHERS), &rows[i]);
        else
            remake(s, &rows[i], context);
        free_durations(rows[i].durations);
    }
    free(rows);
    free(values);
}

void sums_finish(struct sums *s)
{
    if (s->info->complete)
        s->info->complete(s);
    if (s->count)
        qsort_r(s->rows, s->count, sizeof *s->rows, sums_compare_rows, s);
    s->shown = s->count;
    while (s->shown && !s->rows[s->shown - 1].values[0])
        s->shown--;
    while (s->count > s->shown && !s->info->keeps_filtered)
        free_durations(s->rows[--s->count].durations);
    for (uint32_t i = 0; i < s->count; i++)
        for (unsigned k = 0; k < s->value_count; k++)
            s->whole[k] += s->rows[i].values[k];
}

/* ---- cells (table.h, enum column_shows) ---- */

void sums_begin(struct table *t)
{
    const struct sums *s = t->source;
    t->count = s && s->info ? s->shown : 0;
    t->is_there = t->count || (s && s->info && t->format != FORMAT_TEXT && !s->info->is_left_out);
}

/* Returns the thread of a key, and its process. */
static const struct thread *find_thread(const struct sums *s, uint64_t key,
                                        const struct process **process)
{
    const struct recording *rec = s->rec;
    uint32_t index = (uint32_t)key, i = 0;
    while (i + 1 < rec->count &&
           index - rec->processes[i]->first_thread >= rec->processes[i]->threads.count)
        i++;
    *process = rec->processes[i];
    return process_thread(*process, index);
}

/* Shows a process (`t` is NULL), or one of its threads. */
static struct cell show_owner(const struct process *p, const struct thread *t,
                              enum column_shows shows)
{
    char title[1200];
    switch (shows) {
    case SHOWS_HOST: return cell_text(p->header.host);
    case SHOWS_PID: return cell_number(p->header.pid);
    case SHOWS_TID: return cell_number(t->tid);
    case SHOWS_THREAD: return cell_text(t->name);
    default:
        return cell_owned(memory_text(t ? thread_title(p, t, title, sizeof title)
                                        : process_title(p, true, title, sizeof title)));
    }
}

/* Shows a key, or a value that stands for one (SUMS_OF_VALUE). */
static struct cell show_key(const struct sums *s, const struct sums_row *row,
                            const struct column *c)
{
    char text[SUMS_NAME_BYTES];
    bool is_value = c->of >= SUMS_KEYS;
    enum sums_key kind = is_value ? s->info->is[c->of - SUMS_KEYS] : s->info->keys[c->of];
    uint64_t key = is_value ? row->values[c->of - SUMS_KEYS] : row->keys[c->of];
    const struct process *p;
    const struct thread *t;
    const char *name = is_value ? NULL : sums_name(s, row, c->of, text);
    if (c->shows == SHOWS_KEY && name)
        return name == text ? cell_owned(memory_text(text)) : cell_text(name);
    bool is_others = !is_value && sums_is_others(row);
    if (is_others && kind != KEY_TEXT)
        return (struct cell){0};
    switch (kind) {
    case KEY_DOMAIN: return cell_text(api_domain_name((uint8_t)key));
    case KEY_TEXT: return cell_text(is_others ? NULL : sums_shown(key));
    case KEY_THREAD: t = find_thread(s, key, &p); return show_owner(p, t, c->shows);
    case KEY_PROCESS: return show_owner(s->rec->processes[key], NULL, c->shows);
    default: return cell_number(key);
    }
}

static struct cell show_quantile(const struct sums_row *row, const struct column *c, double part)
{
    uint64_t least = c->by ? row->values[c->by] : 0;
    return cell_number(histogram_quantile(row->durations, part, least, row->values[c->of]));
}

/* Shows FLOPs, with the calls that have a number, of those that should. */
static struct cell show_flops(const uint64_t *values)
{
    struct cell cell = values[1] ? cell_number(values[0]) : (struct cell){.kind = CELL_NULL};
    cell.at_least = values[1] < values[2];
    return values[2] ? cell : (struct cell){0};
}

static struct cell sums_cell(const struct sums *s, const struct sums_row *row,
                             const struct column *c)
{
    uint64_t of = c->shows > SHOWS_KEYS ? row->values[c->of] : 0;
    uint64_t by = c->shows > SHOWS_KEYS ? row->values[c->by] : 0;
    switch (c->shows) {
    case SHOWS_VALUE: return cell_number(of);
    case SHOWS_MOMENT: return cell_number(of > s->begin_ns ? of - s->begin_ns : 0);
    case SHOWS_MEAN: return cell_number(by ? of / by : 0);
    case SHOWS_RATE: return cell_real(by ? (double)of / (double)by : 0);
    case SHOWS_MEDIAN: return show_quantile(row, c, 0.5);
    case SHOWS_P95: return show_quantile(row, c, 0.95);
    case SHOWS_SHARE:
        return c->by && by && !of ? (struct cell){0} : cell_share(of, s->whole[c->of]);
    case SHOWS_PART: return cell_share(of, *s->all);
    case SHOWS_FLOPS: return show_flops(&row->values[c->of]);
    case SHOWS_RECORDED: return row->values[0] > of ? cell_number(of) : (struct cell){0};
    case SHOWS_TEXT:
        return cell_text(sums_is_others(row) ? "(others)" : sums_shown(row->keys[c->of]));
    case SHOWS_KEYS:
    case SHOWS_NOTHING: return (struct cell){0};
    default: return show_key(s, row, c);
    }
}

void sums_show(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct sums *s = t->source;
    const struct sums_row *row = &s->rows[index];
    bool is_estimated = s->info->recorded && row->values[0] > row->values[s->info->recorded];
    for (unsigned i = 0; i < t->info->column_count; i++) {
        const struct column *c = &t->info->columns[i];
        if ((t->format == FORMAT_TEXT && c->where && !row->values[c->where]) ||
            (c->only && !row->values[c->only]))
            continue;
        cells[i] = sums_cell(s, row, c);
        cells[i].estimated = is_estimated && c->is_estimated;
    }
    if (s->info->fill)
        s->info->fill(t, row, cells);
}

/* ---- parts ---- */

/* Transfers the shown name, and the recorded one if it differs. */
static void carry_text(struct sums *s, struct part *p, uint64_t *key)
{
    const struct kernel_name *name = p->is_written ? (const void *)(uintptr_t)*key : NULL;
    const char *shown = name ? name->shown : NULL;
    const char *raw = name && name->shown != name->raw ? name->raw : NULL;
    part_text(p, &shown);
    part_text(p, &raw);
    if (p->is_written || !shown)
        return;
    *key = sums_name_key(raw ? kernel_name_intern(&s->walk->kernels, raw, strlen(raw))
                             : kernel_name_intern(&s->walk->texts, shown, strlen(shown)));
}

static void carry_key(struct sums *s, struct part *p, enum sums_key kind, uint64_t *key)
{
    if (kind == KEY_TEXT) {
        carry_text(s, p, key);
        return;
    }
    part_number(p, key);
    if (kind != KEY_PROCESS || p->is_written || p->has_failed)
        return;
    p->has_failed |= *key >= p->process_count;
    *key = p->has_failed ? 0 : p->processes[*key]->index;
}

static void carry_row(struct sums *s, struct part *p, struct sums_row *row)
{
    const struct sums_info *info = s->info;
    bool is_others = sums_is_others(row);
    part_flag(p, &is_others);
    p->has_failed |= is_others && !info->rows_max;
    for (unsigned i = 0; i < SUMS_KEYS && is_others; i++)
        row->keys[i] = SUMS_OTHERS;
    for (unsigned i = 0; i < SUMS_KEYS && info->keys[i] && !is_others; i++)
        carry_key(s, p, info->keys[i], &row->keys[i]);
    for (unsigned i = 0; i < SUMS_VALUES && info->values[i]; i++)
        carry_key(s, p, info->is[i], &row->values[i]);
}

void sums_put(struct sums *s, struct part *p)
{
    part_count(p, &s->count, 1);
    for (uint32_t i = 0; i < s->count; i++) {
        struct sums_row row = s->rows[i];
        carry_row(s, p, &row);
        if (row.durations)
            part_histogram(p, row.durations, NULL);
    }
}

static void sums_add_row(struct sums *s, struct part *p)
{
    uint64_t values[SUMS_VALUES] = {0};
    struct sums_row got = {.values = values};
    carry_row(s, p, &got);
    if (p->has_failed)
        return;
    struct key key = {got.keys[0], got.keys[1], got.keys[2]};
    struct sums_row *row =
        s->info->row && !sums_is_others(&got) ? s->info->row(s, key) : sums_row_make(s, key);
    sums_own_join(s->info, row, got.values);
    if (row->durations)
        part_histogram(p, row->durations, s->histogram_rows);
}

/* Returns the least bytes of a row in a part. */
static unsigned row_bytes(const struct sums_info *info)
{
    unsigned count = 1 + info->has_durations;
    for (unsigned i = 0; i < SUMS_KEYS; i++)
        count += info->keys[i] != KEY_NONE;
    for (unsigned i = 0; i < SUMS_VALUES; i++)
        count += info->values[i] != JOIN_NONE;
    return count;
}

void sums_add(struct sums *s, struct part *p)
{
    uint32_t count = 0;
    part_count(p, &count, row_bytes(s->info));
    for (uint32_t i = 0; i < count && !p->has_failed; i++)
        sums_add_row(s, p);
}
