/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/range_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "model/range_text.h"

/* A range's text, and what it becomes; all views, or NULL. */
struct forms {
    const struct kernel_name *name;
    const struct kernel_name *patterns[2]; /* by enum range_numbers */
};

static const uint32_t limits[2] = {
    [NUMBERS_APART] = RANGES_APART_MAX, [NUMBERS_ALL] = RANGES_ALIKE_MAX};

void range_rows_release(struct range_rows *r)
{
    key_map_release(&r->places);
    free(r->groups);
    free(r->links);
}

static int intern(struct kernel_names *texts, const char *text, uint32_t byte_count,
                  const struct kernel_name **found)
{
    return byte_count ? kernel_name_intern(texts, (const uint8_t *)text, byte_count, found) : 0;
}

static int find_pattern(struct kernel_names *texts, const struct kernel_name *name, unsigned which,
                        const struct kernel_name **pattern)
{
    char out[RECORD_BYTES_MAX];
    *pattern = NULL;
    if (name->raw_bytes > sizeof out)
        return 0;
    enum range_numbers numbers = (enum range_numbers)which;
    uint32_t length = range_text_pattern(name->raw, name->raw_bytes, numbers, out);
    return intern(texts, out, length, pattern);
}

static int find_forms(struct range_rows *r, const struct kernel_name *text, struct forms *f)
{
    char out[RANGE_NAME_BYTES(RECORD_BYTES_MAX)];
    *f = (struct forms){.name = text};
    if (!r->texts || !text || text->raw_bytes > RECORD_BYTES_MAX)
        return 0;
    int error = intern(r->texts, out, range_text_name(text->raw, text->raw_bytes, out), &f->name);
    f->name = f->name ? f->name : text;
    for (unsigned i = 0; error == 0 && i < 2; i++)
        error = find_pattern(r->texts, f->name, i, &f->patterns[i]);
    return error;
}

/* ---- groups ---------------------------------------------------------------------------------- */

#define NO_GROUP UINT32_MAX

/* The place of a group, which is made if there is room for a row of it, or else NO_GROUP. 0 or
 * GPUPROF_NO_MEMORY. */
static int group_of(struct range_rows *r, struct key key, uint32_t *place)
{
    uint64_t known = key_map_get(&r->places, key);
    *place = known ? (uint32_t)known - 1 : NO_GROUP;
    if (known || r->sums->count >= r->sums->rows_max)
        return 0;
    struct range_group *groups = array_room(r->groups, r->count, &r->capacity, sizeof *groups, 64);
    if (!groups)
        return GPUPROF_NO_MEMORY;
    r->groups = groups;
    groups[r->count] = (struct range_group){0};
    *place = r->count++;
    return key_map_set(&r->places, key, r->count);
}

/* All rows of the group become the first of them, which gets the pattern for its name. How many
 * there are less. */
static uint32_t join_group(struct range_rows *r, struct range_group *group, unsigned which,
                           const struct kernel_name *pattern)
{
    struct sums_row *rows = r->sums->rows;
    uint32_t place = group->first, joined = 0;
    while (r->links[place - 1].into)
        place = r->links[place - 1].next[which];
    rows[place - 1].keys[0] = sums_name_key(pattern);
    rows[place - 1].values[r->marks] = 1;
    for (uint32_t next = r->links[place - 1].next[which]; next;
         next = r->links[next - 1].next[which]) {
        if (r->links[next - 1].into)
            continue;
        sums_join(r->sums, &rows[place - 1], &rows[next - 1]);
        r->links[next - 1].into = place;
        joined++;
    }
    group->row = place;
    return joined;
}

/* A new row is one of those that differ in numbers from others. */
static void add_to_groups(struct range_rows *r, uint32_t place, const uint32_t groups[2],
                          const struct forms *f)
{
    for (unsigned which = 0; which < 2; which++) {
        if (groups[which] == NO_GROUP)
            continue;
        struct range_group *group = &r->groups[groups[which]];
        r->links[place - 1].next[which] = group->first;
        group->first = place;
        group->count++;
        group->texts++;
        r->is_unsure |= which == NUMBERS_ALL && group->texts > RANGES_ALIKE_MAX;
    }
    for (unsigned which = 0; which < 2; which++) {
        if (groups[which] == NO_GROUP || r->groups[groups[which]].count <= limits[which])
            continue;
        uint32_t joined = join_group(r, &r->groups[groups[which]], which, f->patterns[which]);
        /* The rows of one with numbers apart are all in one of those with any. */
        for (unsigned i = which; i < 2; i++)
            if (groups[i] != NO_GROUP)
                r->groups[groups[i]].count -= joined;
    }
}

static struct sums_row *live(const struct range_rows *r, struct sums_row *row)
{
    uint32_t place = row ? (uint32_t)(row - r->sums->rows) : UINT32_MAX;
    while (place < r->link_count && r->links[place].into)
        place = r->links[place].into - 1;
    return row ? &r->sums->rows[place] : NULL;
}

struct sums_row *range_rows_get(struct range_rows *r, const struct kernel_name *text,
                                const struct kernel_name *domain)
{
    struct forms f;
    uint32_t groups[2] = {NO_GROUP, NO_GROUP};
    struct key key = {sums_name_key(text), sums_name_key(domain), 0};
    struct sums_row *row = sums_find(r->sums, key);
    if (row)
        return live(r, row);
    if (find_forms(r, text, &f) < 0)
        return NULL;
    key.a = sums_name_key(f.name);
    row = f.name == text ? NULL : sums_find(r->sums, key);
    if (row)
        return live(r, row);
    for (unsigned which = 0; which < 2; which++) {
        if (!f.patterns[which])
            continue;
        struct key its = {sums_name_key(f.patterns[which]), key.b, which};
        if (group_of(r, its, &groups[which]) < 0)
            return NULL;
        uint32_t place = groups[which] == NO_GROUP ? 0 : r->groups[groups[which]].row;
        if (place)
            return live(r, &r->sums->rows[place - 1]);
    }
    uint32_t count = r->sums->count;
    row = sums_row(r->sums, key.a, key.b, 0);
    if (!row || !r->texts || r->sums->count == count || sums_is_others(row))
        return row; /* there is no room but in the row for all others */
    struct range_link *links = array_reach(r->links, &r->link_count, count, sizeof *links);
    if (!links)
        return NULL;
    r->links = links;
    add_to_groups(r, count + 1, groups, &f);
    return live(r, row);
}

/* ---- names that are all known ---------------------------------------------------------------- */

/* Of names that have such a pattern: how many different ones, by it. */
static int count_patterns(struct kernel_names *texts, const struct kernel_name *const *names,
                          uint32_t count, unsigned which, struct key_map *counts)
{
    const struct kernel_name *pattern;
    struct key_map seen = {0};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        struct key name = {(uintptr_t)names[i], 0, 0};
        if (!names[i] || key_map_get(&seen, name))
            continue;
        error = key_map_set(&seen, name, 1);
        if (error == 0)
            error = find_pattern(texts, names[i], which, &pattern);
        struct key key = {(uintptr_t)pattern, 0, 0};
        if (error == 0 && pattern)
            error = key_map_set(counts, key, key_map_get(counts, key) + 1);
    }
    key_map_release(&seen);
    return error;
}

int64_t range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                          uint32_t count)
{
    const struct kernel_name *pattern;
    int64_t grouped = 0;
    int error = 0;
    for (unsigned which = 0; error == 0 && which < 2; which++) {
        struct key_map counts = {0};
        error = count_patterns(texts, names, count, which, &counts);
        for (uint32_t i = 0; error == 0 && i < count; i++) {
            error = names[i] ? find_pattern(texts, names[i], which, &pattern) : 0;
            if (error < 0 || !names[i] || !pattern ||
                key_map_get(&counts, (struct key){(uintptr_t)pattern, 0, 0}) <= limits[which])
                continue;
            names[i] = pattern;
            grouped++;
        }
        key_map_release(&counts);
    }
    return error < 0 ? GPUPROF_NO_MEMORY : grouped;
}

void range_rows_say(FILE *out)
{
    fprintf(out, "*: numbers in which more than %u texts differ; --no-group shows each text\n",
            RANGES_APART_MAX);
}
