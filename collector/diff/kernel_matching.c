/* SPDX-License-Identifier: Apache-2.0 */
#include "diff/kernel_matching.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "diff/pairing.h"
#include "error.h"
#include "symbol/demangle.h"
#include "symbol/kernel_names.h"

static uint64_t steps_of(const struct match_side *side)
{
    return side->steps ? side->steps : 1;
}

double match_per_step(const struct kernel_match *m, enum match_which which, uint64_t amount)
{
    return (double)amount / (double)steps_of(&m->sides[which]);
}

/* Eighths of a launch a step: what a few launches over a border change is no other rate. */
static uint64_t rate_key(const struct matching *g, uint32_t side, uint64_t launches)
{
    return (uint64_t)(8 * match_per_step(g->m, side, launches) + 0.5);
}

/* ---- names and places ------------------------------------------------------------------------ */

static int compare_orders(const void *left, const void *right, void *context)
{
    const struct match_name *names = context;
    const struct match_name *a = &names[*(const uint32_t *)left];
    const struct match_name *b = &names[*(const uint32_t *)right];
    int order = strverscmp(a->raw, b->raw);
    return order ? order : a < b ? -1 : a > b;
}

/* Numbers in names rise in the order in which a compiler met what they are of. */
static int order_names(struct kernel_match *m)
{
    uint32_t *sorted = calloc(m->name_count + 1u, sizeof *sorted);
    if (!sorted)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < m->name_count; i++)
        sorted[i] = i;
    if (m->name_count)
        qsort_r(sorted, m->name_count, sizeof *sorted, compare_orders, m->names);
    for (uint32_t i = 0; i < m->name_count; i++)
        m->names[sorted[i]].order = i;
    free(sorted);
    return 0;
}

static int add_name(struct kernel_match *m, uint32_t side, uint32_t first, unsigned *failures)
{
    const char *raw = m->sides[side].kernels[first].name;
    char *shown = demangle(raw, KERNEL_NAME_BYTES_MAX, failures);
    struct match_name *name = &m->names[m->name_count++];
    *name = (struct match_name){.raw = raw, .side = side, .first = first};
    name->shown = shown ? shown : (char *)(uintptr_t)raw;
    name->is_numbered = kernel_has_ordinal(name->shown, strlen(name->shown));
    name->text = strdup(name->shown);
    return name->text ? 0 : GPUPROF_NO_MEMORY;
}

static int find_names(struct matching *g)
{
    struct kernel_match *m = g->m;
    unsigned failures = 0;
    int error = 0;
    m->names = calloc(g->count + 1u, sizeof *m->names);
    if (!m->names)
        return GPUPROF_NO_MEMORY;
    for (uint32_t side = 0; side < MATCH_SIDES; side++)
        for (uint32_t i = 0; error == 0 && i < m->sides[side].count; i++) {
            const struct run_kernel *k = &m->sides[side].kernels[i];
            if (i == 0 || strcmp(k[-1].name, k->name) != 0)
                error = add_name(m, side, i, &failures);
            struct match_name *name = &m->names[m->name_count - 1];
            name->count++;
            g->items[side][i].is_seldom =
                match_per_step(m, (enum match_which)side, k->count) < STEADY_RATE;
            name->is_frequent |= !g->items[side][i].is_seldom;
            name->launches += k->count;
            name->ns += k->ns;
            g->items[side][i].name = m->name_count - 1;
        }
    return error < 0 ? error : order_names(m);
}

/* Of "train (train.py:17)" what stands before the number. */
static size_t function_length(const char *line)
{
    const char *colon = strrchr(line, ':');
    return colon ? (size_t)(colon - line) : strlen(line);
}

static void number_places(struct matching *g)
{
    static const uint8_t places[AGREEMENTS] = {
        [AGREE_LIBRARY] = RUN_LIBRARY, [AGREE_OPERATOR] = RUN_OPERATOR, [AGREE_LINE] = RUN_LINE,
        [AGREE_FUNCTION] = RUN_LINE,   [AGREE_RANGE] = RUN_RANGE,
    };
    for (unsigned a = AGREEMENTS; a-- > 0;) { /* that of all of them last */
        uint32_t count = 0;
        for (uint32_t side = 0; side < MATCH_SIDES; side++)
            for (uint32_t i = 0; i < g->m->sides[side].count; i++) {
                struct match_item *item = &g->items[side][i];
                const char *text = g->m->sides[side].kernels[i].place[places[a]];
                struct numbered n = {.text = text, .number = &item->places[a]};
                if (a == AGREE_ALL) { /* a range alone is no place of its own */
                    bool is_known = item->places[AGREE_LIBRARY] | item->places[AGREE_OPERATOR] |
                                    item->places[AGREE_LINE];
                    n.text = is_known ? (const char *)&item->places[1] : NULL;
                    n.length = sizeof item->places - sizeof item->places[0];
                } else if (text) {
                    n.length = a == AGREE_FUNCTION ? function_length(text) : strlen(text);
                }
                g->numbered[count++] = n;
            }
        number_texts(g->numbered, count);
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static struct match_row *add_row(struct matching *g, enum match_kind kind)
{
    struct kernel_match *m = g->m;
    struct match_row *rows = array_room(m->rows, m->count, &g->row_capacity, sizeof *rows, 256);
    if (!rows)
        return NULL;
    m->rows = rows;
    rows[m->count] = (struct match_row){.kind = kind, .form = g->form};
    return &rows[m->count++];
}

/* The row of two names, of which one may be UINT32_MAX; its number from 1 on, 0: no memory. */
static uint32_t row_of_names(struct matching *g, enum match_kind kind, uint32_t base,
                             uint32_t other)
{
    struct key key = {base + 1u, other + 1u, 0};
    uint64_t number = key_map_get(&g->pairs, key);
    if (number)
        return (uint32_t)number;
    if (!add_row(g, kind) || key_map_set(&g->pairs, key, g->m->count) < 0)
        return 0;
    return g->m->count;
}

static void set_row(struct matching *g, struct match_item *item, uint32_t row)
{
    struct match_name *name = &g->m->names[item->name];
    item->row = row;
    name->row = name->row ? name->row : row;
}

/* ---- by name --------------------------------------------------------------------------------- */

/* This form of all names, and its numbers: a compiler's ordinals are no names, whatever else has
 * the same. */
static void form_names(struct matching *g)
{
    struct kernel_match *m = g->m;
    bool is_sure = kernel_form_is_sure(g->form);
    for (uint32_t i = 0; i < m->name_count; i++) {
        struct match_name *name = &m->names[i];
        size_t before = name->length;
        if (g->form <= FORM_DEMANGLED) {
            before = name->length = strlen(name->shown);
            memcpy(name->text, name->shown, name->length);
            name->is_vague = false;
        } else {
            name->length = kernel_form_make(g->form, name->text, name->length);
        }
        bool is_exact = g->form == FORM_EXACT;
        bool says = is_sure ? !name->is_vague : true;
        says &= name->length && (!name->is_numbered || g->form >= FORM_GENERATED);
        g->numbered[i] = (struct numbered){.text = !says      ? NULL
                                                   : is_exact ? name->raw
                                                              : name->text,
                                           .length = is_exact ? strlen(name->raw) : name->length,
                                           .number = &name->class};
        name->is_vague |= !is_sure && name->length < before;
    }
    number_texts(g->numbered, m->name_count);
}

/* Launches that lie over a border, or of a name that is seldom at all. */
static bool is_left_over(const struct match_item *item, const struct match_name *name)
{
    return item->is_seldom && (name->row || name->is_steady || name->is_frequent);
}

static int found_items(void *context, const struct pairing_entry *base,
                       const struct pairing_entry *other)
{
    struct matching *g = context;
    struct match_item *a = &g->items[MATCH_BASE][base->index];
    struct match_item *b = &g->items[MATCH_OTHER][other->index];
    uint32_t row = row_of_names(g, MATCH_SAME, a->name, b->name);
    if (!row)
        return GPUPROF_NO_MEMORY;
    set_row(g, a, row);
    set_row(g, b, row);
    return 0;
}

/* Entries of one key are paired in this order: of names in which a compiler counts, theirs. */
static uint64_t order_key(const struct matching *g, const struct match_name *name, double ns)
{
    uint64_t key = name->order;
    if (!kernel_form_is_numbered(g->form))
        memcpy(&key, &ns, sizeof key); /* not negative: it has the order of its bits */
    return key;
}

static double per_launch(uint64_t ns, uint64_t launches)
{
    return launches ? (double)ns / (double)launches : 0;
}

/* Kernels of one form at places that agree so. */
static int match_at(struct matching *g, enum agreement agreement, bool by_rate)
{
    uint32_t count = 0;
    for (uint32_t side = 0; side < MATCH_SIDES; side++)
        for (uint32_t i = 0; i < g->m->sides[side].count; i++) {
            const struct match_item *item = &g->items[side][i];
            const struct match_name *name = &g->m->names[item->name];
            const struct run_kernel *k = &g->m->sides[side].kernels[i];
            double ns = per_launch(k->ns, k->count);
            bool is_out = g->form > FORM_SOURCE && is_left_over(item, name);
            if (!item->row && !is_out && name->class && item->places[agreement])
                g->entries[count++] =
                    (struct pairing_entry){.key = {name->class, item->places[agreement],
                                                   by_rate ? rate_key(g, side, k->count) : 0},
                                           .side = side,
                                           .index = i,
                                           .order = order_key(g, name, ns),
                                           .ns = ns};
        }
    return pairing_make(g->entries, count, false, found_items, g);
}

int matching_pair_names(struct matching *g, uint32_t base, uint32_t other)
{
    uint32_t row = row_of_names(g, MATCH_SAME, base, other);
    if (!row)
        return GPUPROF_NO_MEMORY;
    for (uint32_t side = 0; side < MATCH_SIDES; side++) {
        const struct match_name *name = &g->m->names[side ? other : base];
        for (uint32_t i = 0; i < name->count; i++)
            set_row(g, &g->items[side][name->first + i], row);
    }
    return 0;
}

static int found_names(void *context, const struct pairing_entry *base,
                       const struct pairing_entry *other)
{
    return matching_pair_names(context, base->index, other->index);
}

/* Is the place of none of its kernels known, but for a few launches? */
static bool is_placeless(const struct matching *g, const struct match_name *name)
{
    for (uint32_t i = 0; i < name->count; i++) {
        const struct match_item *item = &g->items[name->side][name->first + i];
        for (unsigned a = 0; a < AGREEMENTS && !item->is_seldom; a++)
            if (item->places[a])
                return false;
    }
    return true;
}

/* Names of which no kernel is matched yet, wherever these were launched. Where a form says too
 * little it must be the only one of its kind, and nothing may be known that speaks against it. */
static int match_names(struct matching *g, bool by_rate)
{
    bool is_sure = kernel_form_is_sure(g->form);
    uint32_t count = 0;
    for (uint32_t i = 0; i < g->m->name_count; i++) {
        const struct match_name *name = &g->m->names[i];
        double ns = per_launch(name->ns, name->launches);
        bool is_out = g->form > FORM_SOURCE && name->is_steady;
        if (!name->row && !is_out && name->class && (is_sure || is_placeless(g, name)))
            g->entries[count++] = (struct pairing_entry){
                .key = {name->class, by_rate ? rate_key(g, name->side, name->launches) : 0},
                .side = name->side,
                .index = i,
                .order = order_key(g, name, ns),
                .ns = ns};
    }
    return pairing_make(g->entries, count, !is_sure, found_names, g);
}

static int match_agreeing(struct matching *g, enum agreement a)
{
    int error = match_at(g, a, true);
    return error < 0 ? error : match_at(g, a, false);
}

/* Wherever they were launched; a range, or a function without the line, decides among several. */
static int match_anywhere(struct matching *g)
{
    bool is_sure = kernel_form_is_sure(g->form);
    int error = is_sure ? match_agreeing(g, AGREE_FUNCTION) : 0;
    if (error == 0 && is_sure)
        error = match_agreeing(g, AGREE_RANGE);
    if (error == 0)
        error = match_names(g, true);
    return error < 0 || !is_sure ? error : match_names(g, false);
}

/* What stands at one place comes first: what is launched there may be chosen anew, and what was
 * chosen there before be chosen elsewhere. */
static int match_forms(struct matching *g)
{
    int error = 0;
    for (unsigned a = 0; error == 0 && a <= AGREE_FUNCTION; a++) {
        for (unsigned form = 0; error == 0 && form < KERNEL_FORMS; form++) {
            g->form = (enum kernel_form)form;
            form_names(g);
            error = a == AGREE_FUNCTION ? match_anywhere(g) : match_agreeing(g, (enum agreement)a);
        }
    }
    return error;
}

/* ---- by place -------------------------------------------------------------------------------- */

static uint32_t count_names(const struct matching *g, const struct pairing_entry *list,
                            uint32_t count)
{
    uint32_t names = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct match_item *items = g->items[list[i].side];
        names += i == 0 || items[list[i].index].name != items[list[i - 1].index].name;
    }
    return names;
}

/* What is left at one place, of both sides. */
static int exchange(struct matching *g, enum agreement a, const struct pairing_entry *list,
                    uint32_t base_count, uint32_t count)
{
    static const uint8_t places[AGREEMENTS] = {RUN_PLACES, RUN_LIBRARY, RUN_OPERATOR,
                                               RUN_LINE,   RUN_LINE,    RUN_RANGE};
    uint32_t base = count_names(g, list, base_count);
    uint32_t other = count_names(g, list + base_count, count - base_count);
    bool is_one = base == 1 && other == 1;
    uint32_t number = is_one
                          ? row_of_names(g, MATCH_RENAMED, g->items[MATCH_BASE][list->index].name,
                                         g->items[MATCH_OTHER][list[base_count].index].name)
                          : 0;
    if (!is_one)
        number = add_row(g, base > other   ? MATCH_FUSED
                            : base < other ? MATCH_SPLIT
                                           : MATCH_REPLACED)
                     ? g->m->count
                     : 0;
    if (!number)
        return GPUPROF_NO_MEMORY;
    struct match_row *row = &g->m->rows[number - 1];
    const struct run_kernel *k = &g->m->sides[MATCH_BASE].kernels[list->index];
    row->where = (enum run_place)places[a];
    for (unsigned i = 0; row->where == RUN_PLACES && i < 3; i++) {
        static const uint8_t said[] = {RUN_LIBRARY, RUN_OPERATOR, RUN_LINE};
        row->where = k->place[said[i]] ? (enum run_place)said[i] : RUN_PLACES;
    }
    row->place = k->place[row->where];
    for (uint32_t i = 0; i < count; i++)
        set_row(g, &g->items[list[i].side][list[i].index], number);
    return 0;
}

static int match_places(struct matching *g, enum agreement a)
{
    uint32_t count = 0;
    int error = 0;
    for (uint32_t side = 0; side < MATCH_SIDES; side++)
        for (uint32_t i = 0; i < g->m->sides[side].count; i++)
            if (!g->items[side][i].row && g->items[side][i].places[a] &&
                !is_left_over(&g->items[side][i], &g->m->names[g->items[side][i].name]))
                g->entries[count++] = (struct pairing_entry){
                    .key = {g->items[side][i].places[a]}, .side = side, .index = i};
    pairing_sort(g->entries, count);
    for (uint32_t at = 0, middle, end; error == 0 && at < count; at = end) {
        pairing_run(g->entries, count, at, &middle, &end);
        if (middle > at && end > middle)
            error = exchange(g, a, g->entries + at, middle - at, end - at);
    }
    return error;
}

/* What else of a name there is belongs to it; a name that nothing was found for is alone. */
static int match_rest(struct matching *g)
{
    for (uint32_t n = 0; n < g->m->name_count; n++) {
        const struct match_name *name = &g->m->names[n];
        bool is_new = name->side == MATCH_OTHER;
        for (uint32_t i = name->first; i < name->first + name->count; i++) {
            struct match_item *item = &g->items[name->side][i];
            if (item->row)
                continue;
            uint32_t row = name->row
                               ? name->row
                               : row_of_names(g,
                                              name->is_steady ? MATCH_SELDOM
                                              : is_new        ? MATCH_NEW
                                                              : MATCH_GONE,
                                              is_new ? UINT32_MAX : n, is_new ? n : UINT32_MAX);
            if (!row)
                return GPUPROF_NO_MEMORY;
            set_row(g, item, row);
        }
    }
    return 0;
}

/* ---- the rows' numbers ----------------------------------------------------------------------- */

/* The members of the rows, side by side; each name of a row's is together. */
static int gather(struct matching *g, uint32_t side)
{
    struct kernel_match *m = g->m;
    const struct match_side *from = &m->sides[side];
    uint32_t *members = m->members[side] = calloc(from->count + 1u, sizeof *members);
    uint32_t at = 0;
    if (!members)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < from->count; i++)
        m->rows[g->items[side][i].row - 1].side[side].members++;
    for (uint32_t r = 0; r < m->count; r++) {
        m->rows[r].side[side].first = at;
        at += m->rows[r].side[side].members;
        m->rows[r].side[side].members = 0;
    }
    for (uint32_t i = 0; i < from->count; i++) {
        struct match_row *row = &m->rows[g->items[side][i].row - 1];
        members[row->side[side].first + row->side[side].members++] = i;
        row->side[side].count += from->kernels[i].count;
        row->side[side].ns += from->kernels[i].ns;
    }
    for (uint32_t r = 0; r < m->count; r++) {
        struct match_row *row = &m->rows[r];
        uint64_t longest = 0, ns = 0;
        for (uint32_t k = 0; k < row->side[side].members; k++) {
            uint32_t i = members[row->side[side].first + k];
            uint32_t before = k ? members[row->side[side].first + k - 1] : 0;
            bool is_further = k && g->items[side][before].name == g->items[side][i].name;
            row->side[side].names += !is_further;
            ns = (is_further ? ns : 0) + from->kernels[i].ns;
            if (ns > longest || !row->side[side].name)
                row->side[side].name = m->names[g->items[side][i].name].shown;
            longest = ns > longest ? ns : longest;
        }
    }
    return 0;
}

double match_added(const struct kernel_match *m, const struct match_row *row)
{
    return match_per_step(m, MATCH_OTHER, row->side[MATCH_OTHER].ns) -
           match_per_step(m, MATCH_BASE, row->side[MATCH_BASE].ns);
}

static const char *row_name(const struct match_row *row)
{
    return row->side[MATCH_BASE].name ? row->side[MATCH_BASE].name : row->side[MATCH_OTHER].name;
}

static int compare_rows(const void *left, const void *right, void *context)
{
    const struct match_row *a = left, *b = right;
    double x = fabs(match_added(context, a)), y = fabs(match_added(context, b));
    int order = x != y ? (x > y ? -1 : 1) : strcmp(row_name(a), row_name(b));
    if (order == 0)
        order = (int)a->kind - (int)b->kind;
    for (unsigned side = 0; order == 0 && side < MATCH_SIDES; side++)
        order = (a->side[side].first > b->side[side].first) -
                (a->side[side].first < b->side[side].first);
    return order;
}

int kernel_match_make(struct kernel_match *m, const struct match_side *base,
                      const struct match_side *other)
{
    *m = (struct kernel_match){.sides = {*base, *other}};
    struct matching g = {.m = m, .count = base->count + other->count};
    for (unsigned side = 0; side < MATCH_SIDES; side++)
        g.items[side] = calloc(m->sides[side].count + 1u, sizeof *g.items[side]);
    g.entries = calloc(g.count + 1u, sizeof *g.entries);
    g.numbered = calloc(g.count + 1u, sizeof *g.numbered);
    bool has_room = g.items[0] && g.items[1] && g.entries && g.numbered;
    int error = has_room ? find_names(&g) : GPUPROF_NO_MEMORY;
    if (error == 0)
        number_places(&g);
    if (error == 0)
        error = matching_find_steady(&g);
    if (error == 0)
        error = match_forms(&g);
    for (unsigned a = 0; error == 0 && a < AGREEMENTS; a++)
        error = match_places(&g, (enum agreement)a);
    if (error == 0)
        error = match_rest(&g);
    for (unsigned side = 0; error == 0 && side < MATCH_SIDES; side++)
        error = gather(&g, side);
    if (error == 0 && m->count)
        qsort_r(m->rows, m->count, sizeof *m->rows, compare_rows, m);
    free(g.items[0]);
    free(g.items[1]);
    free(g.entries);
    free(g.numbered);
    key_map_release(&g.pairs);
    return error;
}

void kernel_match_release(struct kernel_match *m)
{
    for (uint32_t i = 0; i < m->name_count; i++) {
        free(m->names[i].text);
        if (m->names[i].shown != m->names[i].raw)
            free(m->names[i].shown);
    }
    free(m->names);
    free(m->rows);
    free(m->members[0]);
    free(m->members[1]);
    *m = (struct kernel_match){0};
}

const char *match_kind_text(enum match_kind kind)
{
    static const char *const texts[MATCH_KINDS] = {"same",     "renamed", "fused", "split",
                                                   "replaced", "new",     "gone",  "seldom"};
    return texts[kind];
}

const char *match_shown(const struct kernel_match *m, enum match_which which, uint32_t kernel)
{
    uint32_t low = 0, high = m->name_count; /* names are by side, then by their first kernel */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        const struct match_name *name = &m->names[middle];
        bool is_behind = name->side > which || (name->side == which && name->first > kernel);
        *(is_behind ? &high : &low) = middle;
    }
    return m->names[low].shown;
}
