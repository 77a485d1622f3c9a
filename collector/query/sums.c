/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void sums_init(struct sums *s, const struct sums_info *info, const struct recording *rec,
               uint64_t *histogram_rows)
{
    uint64_t more = recording_bytes(rec) / SUMS_FILE_BYTES;
    uint64_t most = SUMS_ROWS_MAX - SUMS_ROWS_FREE;
    bool is_bounded = false;
    for (unsigned i = 0; i < SUMS_KEYS; i++)
        is_bounded |= info->keys[i] == KEY_TEXT || info->keys[i] == KEY_NUMBER;
    more = SUMS_ROWS_FREE + (more < most ? more : most) - 1;
    *s = (struct sums){.info = info,
                       .rec = rec,
                       .count_max = is_bounded ? (uint32_t)more : UINT32_MAX,
                       .histogram_rows = histogram_rows};
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
    for (struct function *f = s->made, *next; f; f = next) {
        next = (struct function *)f->text;
        free(f);
    }
    free(s->rows);
    free(s->functions);
    free(s->function_of);
    key_map_release(&s->places);
    number_set_release(&s->function_names);
}

static int end(void *context)
{
    sums_finish(context);
    return 0;
}

struct consumer sums_consumer(struct sums *s)
{
    struct consumer c = s->info->consumer;
    c.context = s;
    c.end = end;
    if (!recording_expects_gpu(s->rec))
        c.needs &= ~(unsigned)WALK_WORK;
    return c;
}

/* ---- rows ---- */

static uint32_t name_hash(const void *item)
{
    const struct function *f = *(const struct function *const *)item;
    uint32_t hash = 2166136261u ^ f->domain;
    for (const char *p = f->name; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    return hash;
}

static bool same_name(const void *a, const void *b)
{
    const struct function *x = *(const struct function *const *)a;
    const struct function *y = *(const struct function *const *)b;
    return x->domain == y->domain && strcmp(x->name, y->name) == 0;
}

static const struct number_kind by_name = {sizeof(struct function *), name_hash, same_name};

/* The place of the first function of that name and domain, + 1; 0: no memory. */
static uint32_t find_function(struct sums *s, const struct function *f)
{
    uint32_t *number =
        number_set_find(&s->function_names, &by_name, s->functions, s->function_count, &f);
    if (!number || *number)
        return number ? *number : 0;
    const struct function **grown =
        array_room(s->functions, s->function_count, &s->function_capacity, sizeof *grown, 64);
    if (!grown)
        return 0;
    s->functions = grown;
    s->functions[s->function_count++] = f;
    return *number = s->function_count;
}

uint64_t sums_function(struct sums *s, const struct function *f)
{
    if (f->index >= s->function_of_count) {
        uint32_t count = f->index + 256;
        uint32_t *grown = realloc(s->function_of, count * sizeof *grown);
        if (!grown)
            return 0;
        memset(grown + s->function_of_count, 0, (count - s->function_of_count) * sizeof *grown);
        s->function_of = grown;
        s->function_of_count = count;
    }
    uint32_t *place = &s->function_of[f->index];
    if (!*place)
        *place = find_function(s, f);
    return *place ? (uintptr_t)s->functions[*place - 1] : 0;
}

static void start_values(const struct sums_info *info, uint64_t values[static SUMS_VALUES])
{
    for (unsigned i = 0; i < SUMS_VALUES; i++)
        values[i] = info->values[i] == JOIN_LEAST ? UINT64_MAX : 0;
}

struct sums_row *sums_row_make(struct sums *s, struct key key)
{
    static const struct key rest = {UINT64_MAX, UINT64_MAX, UINT64_MAX};
    uint64_t place = key_map_get(&s->places, key);
    if (!place && s->count >= s->count_max)
        place = key_map_get(&s->places, key = rest);
    if (place)
        return &s->rows[place - 1];
    struct sums_row *rows = array_room(s->rows, s->count, &s->capacity, sizeof *rows, 64);
    if (!rows)
        return NULL;
    s->rows = rows;
    struct sums_row *row = &rows[s->count];
    *row = (struct sums_row){.keys = {key.a, key.b, key.c}, .is_rest = key_same(key, rest)};
    start_values(s->info, row->values);
    row->durations = s->info->has_durations ? calloc(1, sizeof *row->durations) : NULL;
    if (s->info->has_durations && !row->durations)
        return NULL;
    return key_map_set(&s->places, key, ++s->count) < 0 ? NULL : row;
}

static int compare_keys(const struct sums_info *info, const struct sums_row *a,
                        const struct sums_row *b)
{
    int order = a->is_rest - b->is_rest;
    for (unsigned i = 0; i < SUMS_KEYS && info->keys[i] && order == 0 && !a->is_rest; i++) {
        const void *x = (const void *)(uintptr_t)a->keys[i];
        const void *y = (const void *)(uintptr_t)b->keys[i];
        uint64_t m = a->keys[i], n = b->keys[i];
        if (info->keys[i] == KEY_TEXT)
            order = m && n ? strcmp(x, y) : (m != 0) - (n != 0);
        else if (info->keys[i] == KEY_FUNCTION)
            order = strcmp(((const struct function *)x)->name, ((const struct function *)y)->name);
        else if (info->keys[i] == KEY_PROCESS)
            m = ((const struct process *)x)->index, n = ((const struct process *)y)->index;
        if (info->keys[i] > KEY_FUNCTION)
            order = (m > n) - (m < n);
    }
    return order;
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const struct sums_info *info = context;
    const struct sums_row *a = left, *b = right;
    uint64_t x = a->values[info->order], y = b->values[info->order];
    if (!a->values[0] != !b->values[0])
        return !a->values[0] - !b->values[0];
    return x == y ? compare_keys(info, a, b) : x > y ? -1 : 1;
}

void sums_finish(struct sums *s)
{
    if (s->count)
        qsort_r(s->rows, s->count, sizeof *s->rows, compare_rows, (void *)(uintptr_t)s->info);
    while (s->count && !s->rows[s->count - 1].values[0])
        free_durations(s->rows[--s->count].durations);
    for (uint32_t i = 0; i < s->count; i++)
        for (unsigned k = 0; k < SUMS_VALUES; k++)
            s->whole[k] += s->rows[i].values[k];
}

/* ---- parts ---- */

#define ROW_BYTES 4 /* in a part, at least */

/* Makes the key out of what the part has of it. `function` and `process` are what it names. */
static void carry_key(struct part *p, enum sums_key kind, uint64_t *key, struct function *function,
                      uint32_t *process)
{
    const void *what = (const void *)(uintptr_t)*key;
    const char *text = p->is_written && kind == KEY_TEXT ? what : NULL;
    if (p->is_written && kind == KEY_FUNCTION)
        *function = *(const struct function *)what;
    if (p->is_written && kind == KEY_PROCESS)
        *process = ((const struct process *)what)->index;
    if (kind == KEY_NUMBER)
        part_number(p, key);
    else if (kind == KEY_PROCESS)
        part_u32(p, process);
    else if (kind == KEY_TEXT)
        part_text(p, &text);
    if (!p->is_written && kind == KEY_TEXT)
        *key = (uintptr_t)text;
    if (kind != KEY_FUNCTION)
        return;
    uint32_t domain = function->domain;
    part_u32(p, &domain);
    part_text(p, &function->name);
    p->has_failed |= domain > UINT8_MAX || !function->name;
    function->domain = (uint8_t)domain;
}

static void carry_values(struct part *p, const struct sums_info *info,
                         uint64_t values[static SUMS_VALUES])
{
    for (unsigned i = 0; i < SUMS_VALUES && info->values[i]; i++)
        part_number(p, &values[i]);
}

void sums_put(struct sums *s, struct part *p)
{
    part_count(p, &s->count, ROW_BYTES);
    for (uint32_t i = 0; i < s->count; i++) {
        struct sums_row *row = &s->rows[i];
        part_flag(p, &row->is_rest);
        for (unsigned k = 0; k < SUMS_KEYS && s->info->keys[k] && !row->is_rest; k++)
            carry_key(p, s->info->keys[k], &(uint64_t){row->keys[k]}, &(struct function){0},
                      &(uint32_t){0});
        carry_values(p, s->info, row->values);
        if (row->durations)
            part_histogram(p, row->durations, NULL);
    }
}

/* A function that a part names: the one of that name, or a new one. */
static uint64_t function_key(struct sums *s, const struct function *named)
{
    uint32_t place = find_function(s, named);
    if (!place || s->functions[place - 1] != named)
        return place ? (uintptr_t)s->functions[place - 1] : 0;
    struct function *made = calloc(1, sizeof *made);
    if (!made)
        return 0;
    *made =
        (struct function){.domain = named->domain, .name = named->name, .text = (char *)s->made};
    s->made = made;
    return (uintptr_t)(s->functions[place - 1] = made);
}

static void join(const struct sums_info *info, struct sums_row *into, const uint64_t *values)
{
    for (unsigned i = 0; i < SUMS_VALUES && info->values[i]; i++) {
        uint64_t *to = &into->values[i], from = values[i];
        if (info->values[i] == JOIN_ADD)
            *to += from;
        else if (info->values[i] == JOIN_MOST ? from > *to : from < *to)
            *to = from;
    }
}

static int add_row(struct sums *s, struct part *p, struct process *const *processes,
                   uint32_t process_count)
{
    uint64_t keys[SUMS_KEYS] = {0}, values[SUMS_VALUES] = {0};
    bool is_rest = false;
    part_flag(p, &is_rest);
    for (unsigned k = 0; k < SUMS_KEYS && s->info->keys[k] && !is_rest; k++) {
        struct function function = {0};
        uint32_t process = 0;
        carry_key(p, s->info->keys[k], &keys[k], &function, &process);
        p->has_failed |= s->info->keys[k] == KEY_PROCESS && process >= process_count;
        if (p->has_failed)
            return 0;
        if (s->info->keys[k] == KEY_PROCESS)
            keys[k] = (uintptr_t)processes[process];
        if (s->info->keys[k] == KEY_FUNCTION && !(keys[k] = function_key(s, &function)))
            return GPUPROF_NO_MEMORY;
    }
    carry_values(p, s->info, values);
    if (p->has_failed)
        return 0;
    struct sums_row *row = is_rest ? sums_row(s, UINT64_MAX, UINT64_MAX, UINT64_MAX)
                                   : sums_row(s, keys[0], keys[1], keys[2]);
    if (!row)
        return GPUPROF_NO_MEMORY;
    join(s->info, row, values);
    if (row->durations)
        part_histogram(p, row->durations, s->histogram_rows);
    return 0;
}

int sums_add(struct sums *s, struct part *p, struct process *const *processes,
             uint32_t process_count)
{
    uint32_t count = 0;
    int error = 0;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_row(s, p, processes, process_count);
    return error;
}
