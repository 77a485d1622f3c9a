/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "symbol/kernel_names.h"

/* Keys by which two names can match; of the places, the most certain come first. */
enum match_key {
    KEY_NAME,     /* as recorded */
    KEY_TEMPLATE, /* kernel_name_strip */
    KEY_LIBRARY,  /* where they were launched */
    KEY_OPERATOR,
    KEY_LINE,
    KEY_FUNCTION, /* of the line; its number changes with edits above it */
    KEY_RANGE,
    KEY_NOWHERE, /* none of these places is known */
    MATCH_KEYS
};

static const enum run_text places[MATCH_KEYS] = {
    [KEY_LIBRARY] = RUN_LIBRARY, [KEY_OPERATOR] = RUN_OPERATOR, [KEY_LINE] = RUN_LINE,
    [KEY_FUNCTION] = RUN_LINE,   [KEY_RANGE] = RUN_RANGE,
};

struct match_name {
    const char *keys[MATCH_KEYS]; /* NULL: the name lacks it and skips such rounds */
    char *demangled;              /* owned, as are the next two; NULL: not a C++ name */
    char *stripped;
    char *function;
    uint32_t side;
    bool is_matched;
    uint64_t count, ns;
    uint64_t longest_ns; /* at one place, the one in `keys` */
};

/* ---- names ----------------------------------------------------------------------------------- */

/* Sets the place of a name, where it takes longest. */
static void kernel_match_set_place(struct match_name *name, const struct run_kernel *k)
{
    const char *line = k->texts[RUN_LINE], *number = line ? strrchr(line, ':') : NULL;
    bool is_known = false;
    for (unsigned key = KEY_LIBRARY; key <= KEY_RANGE; key++) {
        name->keys[key] = k->texts[places[key]];
        is_known |= name->keys[key] != NULL;
    }
    free(name->function);
    name->function = memory_text(line);
    if (number)
        name->function[number - line] = '\0';
    name->keys[KEY_FUNCTION] = name->function;
    name->keys[KEY_NOWHERE] = is_known ? NULL : "";
}

static void add_name(struct kernel_match *m, uint32_t side, const char *raw, unsigned *failures)
{
    struct match_name *name = &m->names[m->name_count++];
    *name = (struct match_name){.keys[KEY_NAME] = raw, .side = side};
    name->demangled = demangle(raw, KERNEL_NAME_BYTES_MAX, failures);
    name->stripped = memory_text(name->demangled ? name->demangled : raw);
    kernel_name_strip(name->stripped);
    name->keys[KEY_TEMPLATE] = *name->stripped ? name->stripped : NULL;
}

static void find_names(struct kernel_match *m)
{
    unsigned failures = 0;
    m->names = memory_new((size_t)m->sides[0]->count + m->sides[1]->count, sizeof *m->names);
    for (uint32_t side = 0; side < MATCH_SIDES; side++)
        for (uint32_t i = 0; i < m->sides[side]->count; i++) {
            const struct run_kernel *k = &m->sides[side]->list[i];
            const char *raw = k->texts[RUN_NAME];
            bool is_new = i == 0 || strcmp(k[-1].texts[RUN_NAME], raw) != 0;
            if (is_new)
                add_name(m, side, raw, &failures);
            struct match_name *name = &m->names[m->name_count - 1];
            if (is_new || k->ns > name->longest_ns) {
                kernel_match_set_place(name, k);
                name->longest_ns = k->ns;
            }
            name->count += k->count;
            name->ns += k->ns;
        }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static double steps_of(const struct kernel_match *m, uint32_t side)
{
    return m->sides[side]->steps ? (double)m->sides[side]->steps : 1;
}

static bool is_seldom(const struct kernel_match *m, const struct match_name *name)
{
    return (double)name->count / steps_of(m, name->side) < SELDOM_RATE;
}

static void add_to_row(struct match_row *row, struct match_name *name)
{
    uint32_t side = name->side;
    name->is_matched = true;
    if (!row->side[side].name || name->ns > row->side[side].longest_ns) {
        row->side[side].name = name->demangled ? name->demangled : name->keys[KEY_NAME];
        row->side[side].longest_ns = name->ns;
    }
    row->side[side].names++;
    row->side[side].count += (double)name->count;
    row->side[side].ns += (double)name->ns;
}

static int compare_keys(const struct match_name *a, const struct match_name *b,
                        const enum match_key *round)
{
    return strcmp(a->keys[round[0]], b->keys[round[0]])
               ?: strcmp(a->keys[round[1]], b->keys[round[1]]);
}

static int kernel_match_compare_names(const void *left, const void *right, void *round)
{
    const struct match_name *a = *(struct match_name *const *)left;
    const struct match_name *b = *(struct match_name *const *)right;
    return compare_keys(a, b, round) ?: ORDER(a, b); /* base side first */
}

/* Makes one row of `count` matching names; the first `base` are from the base side. */
static void make_row(struct kernel_match *m, const enum match_key *round, struct match_name **names,
                     uint32_t base, uint32_t count)
{
    struct match_row *row = &m->rows[m->count++];
    enum match_key first = round[0];
    uint32_t other = count - base;
    *row = (struct match_row){.kind = MATCH_SAME};
    if (first <= KEY_TEMPLATE) {
        row->by = first == KEY_NAME ? "exact" : "template";
    } else {
        row->kind = base > other   ? MATCH_FUSED
                    : base < other ? MATCH_SPLIT
                    : base > 1     ? MATCH_REPLACED
                                   : MATCH_RENAMED;
        row->where = places[first];
        row->place = names[0]->keys[first == KEY_FUNCTION ? KEY_LINE : first];
    }
    for (uint32_t i = 0; i < count; i++)
        add_to_row(row, names[i]);
}

/* Matches names that agree in both keys of the round. */
static void match_by(struct kernel_match *m, const enum match_key *round, struct match_name **open)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < m->name_count; i++) {
        struct match_name *name = &m->names[i];
        if (!name->is_matched && name->keys[round[0]] && name->keys[round[1]] &&
            (round[0] == KEY_NAME || !is_seldom(m, name)))
            open[count++] = name;
    }
    if (count)
        qsort_r(open, count, sizeof(struct match_name *), kernel_match_compare_names,
                (void *)(uintptr_t)round);
    for (uint32_t at = 0, end; at < count; at = end) {
        uint32_t base = 0;
        for (end = at; end < count && compare_keys(open[at], open[end], round) == 0; end++)
            base += open[end]->side == MATCH_BASE;
        if (base && base < end - at)
            make_row(m, round, open + at, base, end - at);
    }
}

static void add_rest(struct kernel_match *m)
{
    for (uint32_t i = 0; i < m->name_count; i++) {
        struct match_name *name = &m->names[i];
        if (name->is_matched)
            continue;
        m->rows[m->count] = (struct match_row){.kind = is_seldom(m, name)          ? MATCH_SELDOM
                                                       : name->side == MATCH_OTHER ? MATCH_NEW
                                                                                   : MATCH_GONE};
        add_to_row(&m->rows[m->count++], name);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Divides the sums of a row by the steps. */
static void per_step(const struct kernel_match *m, struct match_row *row)
{
    for (unsigned side = 0; side < MATCH_SIDES; side++) {
        row->side[side].count /= steps_of(m, side);
        row->side[side].ns /= steps_of(m, side);
    }
    row->added_ns = row->side[MATCH_OTHER].ns - row->side[MATCH_BASE].ns;
}

static const char *row_name(const struct match_row *row)
{
    return row->side[MATCH_BASE].name ? row->side[MATCH_BASE].name : row->side[MATCH_OTHER].name;
}

static int kernel_match_compare_rows(const void *left, const void *right)
{
    const struct match_row *a = left, *b = right;
    return ORDER(fabs(b->added_ns), fabs(a->added_ns)) ?: strcmp(row_name(a), row_name(b));
}

void kernel_match_make(struct kernel_match *m, const struct run_kernels *base,
                       const struct run_kernels *other)
{
    *m = (struct kernel_match){.sides = {base, other}};
    find_names(m);
    struct match_name **open = memory_new(m->name_count, sizeof *open);
    m->rows = memory_new(m->name_count, sizeof *m->rows);
    match_by(m, (const enum match_key[]){KEY_NAME, KEY_NAME}, open);
    for (enum match_key key = KEY_LIBRARY; key <= KEY_NOWHERE; key++)
        match_by(m, (const enum match_key[]){KEY_TEMPLATE, key}, open);
    for (enum match_key key = KEY_LIBRARY; key <= KEY_RANGE; key++)
        match_by(m, (const enum match_key[]){key, key}, open);
    free(open);
    add_rest(m);
    for (uint32_t i = 0; i < m->count; i++)
        per_step(m, &m->rows[i]);
    ARRAY_SORT(m->rows, m->count, kernel_match_compare_rows);
}

void kernel_match_release(struct kernel_match *m)
{
    for (uint32_t i = 0; i < m->name_count; i++) {
        free(m->names[i].demangled);
        free(m->names[i].stripped);
        free(m->names[i].function);
    }
    free(m->names);
    free(m->rows);
    *m = (struct kernel_match){0};
}
