/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/range_rows.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"
#include "resolve/range_text.h"

static const uint32_t limits[2] = {
    [NUMBERS_APART] = RANGES_APART_MAX, [NUMBERS_ALL] = RANGES_ALIKE_MAX};

/* Sets *pattern to the text with '*' for such numbers; NULL if it has none, or is too long. */
static int find_pattern(struct kernel_names *texts, const struct kernel_name *name, unsigned which,
                        const struct kernel_name **pattern)
{
    char out[RECORD_BYTES_MAX];
    *pattern = NULL;
    if (!name || name->raw_bytes > sizeof out)
        return 0;
    enum range_numbers numbers = (enum range_numbers)which;
    uint32_t length = range_text_pattern(name->raw, name->raw_bytes, numbers, out);
    *pattern = length ? kernel_name_intern(texts, out, length) : NULL;
    return 0;
}

/* Sets *name to the subject of the text. */
static int range_rows_find_name(struct kernel_names *texts, const struct kernel_name *text,
                                const struct kernel_name **name)
{
    char out[RANGE_NAME_BYTES(RECORD_BYTES_MAX)];
    const struct kernel_name *found = NULL;
    uint32_t length = 0;
    if (text && text->raw_bytes <= RECORD_BYTES_MAX)
        length = range_text_name(text->raw, text->raw_bytes, out);
    if (length)
        found = kernel_name_intern(texts, out, length);
    *name = found ? found : text;
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Counts the different names of each pattern and domain. */
static int count_patterns(struct kernel_names *texts, const struct kernel_name *const *names,
                          const struct kernel_name *const *domains, uint32_t count, unsigned which,
                          struct key_map *counts)
{
    enum { SEEN, COUNT };
    const struct kernel_name *pattern;
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        struct key key = {(uintptr_t)names[i], domains ? (uintptr_t)domains[i] : 0, SEEN};
        if (key_map_get(counts, key))
            continue;
        error = find_pattern(texts, names[i], which, &pattern);
        if (error < 0 || !pattern)
            continue;
        error = key_map_set(counts, key, 1);
        key.a = (uintptr_t)pattern;
        key.c = COUNT;
        if (error == 0)
            error = key_map_set(counts, key, key_map_get(counts, key) + 1);
    }
    return error;
}

int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          const struct kernel_name *const *domains, uint32_t count)
{
    const struct kernel_name *pattern;
    int64_t grouped = 0;
    int error = 0;
    for (unsigned which = NUMBERS_APART; error == 0 && which <= NUMBERS_ALL; which++) {
        struct key_map counts = {0};
        error = count_patterns(texts, names, domains, count, which, &counts);
        for (uint32_t i = 0; error == 0 && i < count; i++) {
            error = find_pattern(texts, names[i], which, &pattern);
            struct key key = {(uintptr_t)pattern, domains ? (uintptr_t)domains[i] : 0, 1};
            if (error < 0 || !pattern || key_map_get(&counts, key) <= limits[which])
                continue;
            names[i] = pattern;
            grouped++;
        }
        key_map_release(&counts);
    }
    return error < 0 ? GPUPROF_NO_MEMORY : grouped;
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct grouping {
    const struct kernel_name **names; /* owned: of all rows, except others, and ... */
    const struct kernel_name **domains;
    uint32_t at;
    unsigned marks;
};

static int regroup(struct sums *s, struct sums_row *row, void *context)
{
    struct grouping *g = context;
    uint64_t name = sums_name_key(g->names[g->at++]);
    struct sums_row *into = sums_row(s, name, row->keys[1], row->keys[2]);
    if (!into)
        return GPUPROF_NO_MEMORY;
    sums_join(s, into, row);
    if (name != row->keys[0])
        into->values[g->marks] = 1;
    return 0;
}

int range_rows_complete(struct range_rows *r)
{
    struct sums *s = r->sums;
    struct grouping g = {.marks = r->marks};
    if (!s->groups)
        return 0;
    g.names = calloc(2 * (s->count + 1u), sizeof *g.names);
    g.domains = g.names + s->count;
    for (uint32_t i = 0; g.names && i < s->count; i++) {
        if (sums_is_others(&s->rows[i]))
            continue;
        g.names[g.at] = (const void *)(uintptr_t)s->rows[i].keys[0];
        g.domains[g.at++] = (const void *)(uintptr_t)s->rows[i].keys[1];
    }
    int64_t grouped = GPUPROF_NO_MEMORY;
    if (g.names)
        grouped = range_names_group(&s->walk->texts, g.names, g.domains, g.at);
    g.at = 0;
    int error = grouped > 0 ? sums_remake(s, regroup, &g) : (int)grouped;
    free(g.names);
    return error;
}

struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain)
{
    struct sums *s = r->sums;
    struct key key = {sums_name_key(text), sums_name_key(domain), 0};
    struct sums_row *row = sums_find(s, key);
    const struct kernel_name *name, *pattern;
    if (row || !s->groups)
        return row ? row : sums_row(s, key.a, key.b, 0);
    if (range_rows_find_name(&s->walk->texts, text, &name) < 0)
        return NULL;
    key.a = sums_name_key(name);
    row = sums_find(s, key);
    if (row)
        return row;
    unsigned which = NUMBERS_APART;
    int error = find_pattern(&s->walk->texts, name, which, &pattern);
    if (error == 0 && !pattern)
        error = find_pattern(&s->walk->texts, name, which = NUMBERS_ALL, &pattern);
    if (error < 0)
        return NULL;
    struct key group = {sums_name_key(pattern), key.b, 0};
    uint64_t count = key_map_get(&r->counts, group);
    if (pattern && count > limits[which]) {
        row = sums_row(s, group.a, group.b, 0);
        if (row)
            row->values[r->marks] = 1;
        return row;
    }
    if (pattern && key_map_set(&r->counts, group, count + 1) < 0)
        return NULL;
    return sums_row(s, key.a, key.b, 0);
}

void range_rows_say(FILE *out)
{
    fprintf(out, "*: a number that differs in more than %u names; --no-group shows each name\n",
            RANGES_APART_MAX);
}
