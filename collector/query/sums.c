/* SPDX-License-Identifier: Apache-2.0 */
#include "query/sums.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void sums_init(struct sums *s, const struct sums_info *info, const struct recording *rec,
               uint64_t *histogram_rows)
{
    *s = (struct sums){.info = info, .rec = rec, .histogram_rows = histogram_rows};
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

struct sums_row *sums_row_make(struct sums *s, struct key key)
{
    uint64_t place = key_map_get(&s->places, key);
    if (place)
        return &s->rows[place - 1];
    struct sums_row *rows = array_room(s->rows, s->count, &s->capacity, sizeof *rows, 64);
    if (!rows)
        return NULL;
    s->rows = rows;
    struct sums_row *row = &rows[s->count];
    *row = (struct sums_row){.keys = {key.a, key.b, key.c}};
    row->durations = s->info->has_durations ? calloc(1, sizeof *row->durations) : NULL;
    if (s->info->has_durations && !row->durations)
        return NULL;
    return key_map_set(&s->places, key, ++s->count) < 0 ? NULL : row;
}

static int compare_keys(const struct sums_info *info, const struct sums_row *a,
                        const struct sums_row *b)
{
    int order = 0;
    for (unsigned i = 0; i < SUMS_KEYS && info->keys[i] && order == 0; i++) {
        uint64_t m = a->keys[i], n = b->keys[i];
        const struct function *x = (const void *)(uintptr_t)m, *y = (const void *)(uintptr_t)n;
        order = info->keys[i] == KEY_FUNCTION ? strcmp(x->name, y->name) : (m > n) - (m < n);
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

static void carry_function(struct part *p, struct function *f)
{
    uint32_t domain = f->domain;
    part_u32(p, &domain);
    part_text(p, &f->name);
    p->has_failed |= domain > UINT8_MAX || !f->name;
    f->domain = (uint8_t)domain;
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
        for (unsigned k = 0; k < SUMS_KEYS && s->info->keys[k]; k++)
            carry_function(p,
                           &(struct function){
                               .domain = ((const struct function *)(uintptr_t)row->keys[k])->domain,
                               .name = ((const struct function *)(uintptr_t)row->keys[k])->name});
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
        else if (from > *to)
            *to = from;
    }
}

static int add_row(struct sums *s, struct part *p)
{
    uint64_t keys[SUMS_KEYS] = {0}, values[SUMS_VALUES] = {0};
    for (unsigned k = 0; k < SUMS_KEYS && s->info->keys[k]; k++) {
        struct function function = {0};
        carry_function(p, &function);
        if (p->has_failed)
            return 0;
        if (!(keys[k] = function_key(s, &function)))
            return GPUPROF_NO_MEMORY;
    }
    carry_values(p, s->info, values);
    if (p->has_failed)
        return 0;
    struct sums_row *row = sums_row(s, keys[0], keys[1], keys[2]);
    if (!row)
        return GPUPROF_NO_MEMORY;
    join(s->info, row, values);
    if (row->durations)
        part_histogram(p, row->durations, s->histogram_rows);
    return 0;
}

int sums_add(struct sums *s, struct part *p)
{
    uint32_t count = 0;
    int error = 0;
    part_count(p, &count, ROW_BYTES);
    for (uint32_t i = 0; i < count && error == 0 && !p->has_failed; i++)
        error = add_row(s, p);
    return error;
}
