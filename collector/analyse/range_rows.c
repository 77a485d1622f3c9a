/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/range_rows.h"

#include <stdlib.h>

#include "base/memory.h"

static const uint32_t limits[2] = {
    [NUMBERS_APART] = RANGES_APART_MAX, [NUMBERS_ALL] = RANGES_ALIKE_MAX};

/* Returns the text with '*' for such numbers; NULL if it has none, or is too long. */
static const struct kernel_name *
pattern_of(struct kernel_names *texts, const struct kernel_name *name, enum range_numbers numbers)
{
    char out[RECORD_BYTES_MAX];
    uint32_t length = name && name->raw_bytes <= sizeof out
                          ? range_text_pattern(name->raw, name->raw_bytes, numbers, out)
                          : 0;
    return length ? kernel_name_intern(texts, out, length) : NULL;
}

/* Returns the subject of the text. */
static const struct kernel_name *subject_of(struct kernel_names *texts,
                                            const struct kernel_name *text)
{
    char out[RANGE_NAME_BYTES(RECORD_BYTES_MAX)];
    uint32_t length = text && text->raw_bytes <= RECORD_BYTES_MAX
                          ? range_text_name(text->raw, text->raw_bytes, out)
                          : 0;
    const struct kernel_name *subject = length ? kernel_name_intern(texts, out, length) : NULL;
    return subject ? subject : text;
}

void range_names_group(struct kernel_names *texts, const struct kernel_name **names,
                       const struct kernel_name *const *domains, uint32_t count)
{
    enum { SEEN, COUNT };
    for (enum range_numbers which = NUMBERS_APART; which <= NUMBERS_ALL; which++) {
        struct key_map counts = {0}; /* of different names, by pattern and domain */
        for (uint32_t i = 0; i < count; i++) {
            struct key key = {(uintptr_t)names[i], domains ? (uintptr_t)domains[i] : 0, SEEN};
            const struct kernel_name *pattern =
                key_map_get(&counts, key) ? NULL : pattern_of(texts, names[i], which);
            if (!pattern)
                continue;
            key_map_set(&counts, key, 1);
            key = (struct key){(uintptr_t)pattern, key.b, COUNT};
            key_map_set(&counts, key, key_map_get(&counts, key) + 1);
        }
        for (uint32_t i = 0; i < count; i++) {
            const struct kernel_name *pattern = pattern_of(texts, names[i], which);
            struct key key = {(uintptr_t)pattern, domains ? (uintptr_t)domains[i] : 0, COUNT};
            if (pattern && key_map_get(&counts, key) > limits[which])
                names[i] = pattern;
        }
        key_map_release(&counts);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void regroup(struct sums *s, struct sums_row *row, void *context)
{
    const struct kernel_name ***next = context;
    uint64_t name = sums_name_key(*(*next)++);
    struct sums_row *into = sums_row(s, name, row->keys[1], row->keys[2]);
    sums_join(s, into, row);
    into->values[s->info->marks] |= name != row->keys[0];
}

void range_rows_complete(struct sums *s)
{
    if (!s->groups)
        return;
    const struct kernel_name **names = memory_new(2 * (s->count + 1u), sizeof *names);
    const struct kernel_name **domains = names + s->count, **next = names;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++) {
        if (sums_is_others(&s->rows[i]))
            continue;
        names[count] = (const void *)(uintptr_t)s->rows[i].keys[0];
        domains[count++] = (const void *)(uintptr_t)s->rows[i].keys[1];
    }
    range_names_group(&s->walk->texts, names, domains, count);
    sums_remake(s, regroup, &next);
    free(names);
}

struct sums_row *range_row(struct sums *s, struct key key)
{
    const struct kernel_name *name = (const void *)(uintptr_t)key.a, *pattern = NULL;
    struct sums_row *row = sums_find(s, key);
    if (row || !s->groups)
        return row ? row : sums_row(s, key.a, key.b, 0);
    name = subject_of(&s->walk->texts, name);
    key.a = sums_name_key(name);
    if ((row = sums_find(s, key)))
        return row;
    enum range_numbers which = NUMBERS_APART;
    if (!(pattern = pattern_of(&s->walk->texts, name, which)))
        pattern = pattern_of(&s->walk->texts, name, which = NUMBERS_ALL);
    struct key group = {sums_name_key(pattern), key.b, 0};
    uint64_t count = key_map_get(&s->groups_of, group);
    if (pattern && count > limits[which]) {
        row = sums_row(s, group.a, group.b, 0);
        row->values[s->info->marks] = 1;
        return row;
    }
    if (pattern)
        key_map_set(&s->groups_of, group, count + 1);
    return sums_row(s, key.a, key.b, 0);
}

void range_rows_say(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    if (s->whole[s->info->marks])
        fprintf(out, "*: a number that differs in more than %u names; --no-group shows each name\n",
                RANGES_APART_MAX);
}
