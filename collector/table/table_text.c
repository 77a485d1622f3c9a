/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tables as text: numeric columns of fixed width, a space before each, and the name last. On a
 * narrow terminal, names are cut in the middle and spare columns are dropped: first those that are
 * 0 in all rows, from the right.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/text.h"
#include "table/screen.h"
#include "table/table.h"

#define NAME_WIDTH_MIN 32 /* narrower names drop columns */
#define SPARE_MAX      4

struct layout {
    const struct column *columns;
    uint8_t shown[TABLE_TEXT_MAX]; /* indices of columns, without the name */
    unsigned count;
    unsigned name_at;               /* text column where names begin */
    unsigned name_width;            /* 0: no limit */
    uint8_t spared[TABLE_TEXT_MAX]; /* dropped columns, first dropped first */
    unsigned spared_count;
};

/* Returns the width without names. The first column has no space before it. */
static unsigned table_text_measure(const struct layout *l)
{
    unsigned width = 2;
    for (unsigned i = 0; i < l->count; i++)
        width += l->columns[l->shown[i]].width + (i > 0);
    return width;
}

static void leave_out(struct layout *l, unsigned at)
{
    l->spared[l->spared_count++] = l->shown[at];
    memmove(l->shown + at, l->shown + at + 1, --l->count - at);
}

/* Finds out which columns have a value in a visible row, and which have one that is not 0; looks
 * only for those wanted. */
static void find_columns(const struct table *t, uint32_t wanted, uint32_t *filled,
                         uint32_t *telling)
{
    *filled = *telling = 0;
    for (uint32_t i = 0; wanted & ~*telling && i < t->shown; i++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        table_row(t, i, cells);
        for (unsigned c = 0; c < t->info->column_count; c++) {
            bool is_zero = cells[c].kind != CELL_TEXT && !cells[c].number && !(cells[c].real != 0);
            *filled |= (uint32_t)(cells[c].kind > CELL_NULL) << c;
            *telling |= (uint32_t)!is_zero << c;
        }
        cells_release(cells);
    }
}

_Static_assert(TABLE_COLUMNS_MAX <= 32, "a bit for each column");

/* Fills in the columns of the text and returns their number. */
static unsigned text_columns(const struct table_info *info, uint8_t text[static TABLE_TEXT_MAX])
{
    unsigned count = 0;
    for (unsigned i = 0; info->text[i]; i++)
        text[count++] = info->text[i];
    for (unsigned i = 1; !info->text[0] && i < info->column_count; i++)
        if (info->columns[i].label && info->columns[i].width)
            text[count++] = (uint8_t)i;
    return count;
}

static struct layout lay_out(const struct table *t, uint32_t width)
{
    const struct table_info *info = t->info;
    struct layout l = {.columns = info->columns};
    unsigned wanted = info->name_width ? info->name_width : NAME_WIDTH_MIN;
    uint32_t filled, telling, looked_for = 0;
    uint8_t text[TABLE_TEXT_MAX];
    unsigned count = text_columns(info, text);
    for (unsigned i = 0; i < count; i++) {
        const struct column *c = &info->columns[text[i]];
        looked_for |= (uint32_t)(c->is_filled || (width && c->spare)) << text[i];
    }
    find_columns(t, looked_for, &filled, &telling);
    for (unsigned i = 0; i < count; i++)
        if (!info->columns[text[i]].is_filled || filled >> text[i] & 1)
            l.shown[l.count++] = text[i];
    for (unsigned i = l.count; width && i-- > 0 && table_text_measure(&l) + wanted > width;)
        if (info->columns[l.shown[i]].spare && !(telling >> l.shown[i] & 1))
            leave_out(&l, i);
    for (unsigned spare = 1; width && spare <= SPARE_MAX; spare++)
        for (unsigned i = l.count; i-- > 0 && table_text_measure(&l) + wanted > width;)
            if (info->columns[l.shown[i]].spare == spare)
                leave_out(&l, i);
    l.name_at = table_text_measure(&l);
    if (width && l.count) /* a table of words only has no names */
        l.name_width = width > l.name_at + TEXT_WIDTH_MIN ? width - l.name_at : TEXT_WIDTH_MIN;
    return l;
}

/* Prints `length` bytes of a clean name, `in` columns after where names begin. */
static void print_name(const struct layout *l, const char *text, size_t length, unsigned in,
                       FILE *out)
{
    unsigned width = l->name_width > TEXT_WIDTH_MIN + in ? l->name_width - in : TEXT_WIDTH_MIN;
    char *cut = l->name_width ? text_cut_stack(text, length, width) : NULL;
    fprintf(out, "%.*s\n", cut ? (int)strlen(cut) : (int)length, cut ? cut : text);
    free(cut);
}

static void print_lines(const struct layout *l, const struct cell *cell, enum column_type type,
                        FILE *out)
{
    char *clean = type == COLUMN_LINES || !cell->text ? NULL : json_line(cell->text);
    const char *text = clean ? clean : type == COLUMN_LINES && cell->text ? cell->text : "?";
    size_t length = strcspn(text, "\n");
    print_name(l, text, length, 0, out);
    while (text[length]) {
        text += length + 1;
        length = strcspn(text, "\n");
        fprintf(out, "%*s", (int)l->name_at + 2, "");
        print_name(l, text, length, 2, out);
    }
    free(clean);
}

static void print_cell(const struct column *c, const struct cell *cell, bool is_first, FILE *out)
{
    static const char *(*const units[])(char *text, uint64_t number) = {
        [COLUMN_NS] = time_text,     [COLUMN_BYTES] = bytes_text,   [COLUMN_AMOUNT] = amount_text,
        [COLUMN_POWER] = power_text, [COLUMN_ENERGY] = energy_text, [COLUMN_LIST] = NULL};
    char text[UNIT_TEXT_BYTES + 1] = {cell->estimated ? '~' : '>'};
    char *number = text + (cell->estimated || cell->at_least);
    const char *shown = text;
    if (cell->kind == CELL_TEXT)
        shown = cell->text;
    else if (cell->kind == CELL_REAL)
        snprintf(number, UNIT_TEXT_BYTES,
                 c->type == COLUMN_SHARE        ? "%.1f%%"
                 : c->type == COLUMN_FINE_SHARE ? "%.2f%%"
                                                : "%.3f",
                 c->type == COLUMN_RATE ? cell->real : 100 * cell->real);
    else if (cell->kind == CELL_NUMBER)
        (units[c->type] ? units[c->type] : count_text)(number, cell->number);
    else
        shown = "";
    fprintf(out, "%s%*s", is_first ? "" : " ", c->width, shown);
}

static void print_labels(const struct table_info *info, const struct layout *l, FILE *out)
{
    for (unsigned i = 0; i < l->count; i++) {
        struct cell label = cell_text(l->columns[l->shown[i]].label);
        print_cell(&l->columns[l->shown[i]], &label, i == 0, out);
    }
    fprintf(out, "  %s\n", info->columns[0].label);
}

static void print_row(const struct layout *l, const struct cell *cells, FILE *out)
{
    for (unsigned i = 0; i < l->count; i++)
        print_cell(&l->columns[l->shown[i]], &cells[l->shown[i]], i == 0, out);
    fputs("  ", out);
    print_lines(l, &cells[0], l->columns[0].type, out);
}

static void print_more(const struct table *t, const struct table_view *view, const struct layout *l,
                       FILE *out)
{
    char number[UNIT_TEXT_BYTES];
    uint32_t left = t->rows - t->shown;
    fprintf(out, "%*s... and %s more", (int)l->name_at, "", count_text(number, left));
    if (table_is_short(t->info, view))
        fprintf(out, ": --full\n");
    else
        fprintf(out, " row%s%s\n", plural_end(left),
                view->limit == ROWS_UNLIMITED ? "; --limit=N shows more of them" : "");
}

static void print_table(const struct table *t, const struct table_view *view, FILE *out)
{
    const struct table_info *info = t->info;
    struct layout l = lay_out(t, view->width);
    fputc('\n', out);
    if (info->title)
        fprintf(out, view->has_colour ? COLOUR_STRONG "%s" COLOUR_END "\n" : "%s\n", info->title);
    if (info->text_before)
        info->text_before(t, out);
    if (!info->is_bare && (t->rows || info->foot))
        print_labels(info, &l, out);
    for (uint32_t i = 0; i <= t->shown && !ferror(out); i++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        if (i == t->shown && t->shown < t->rows)
            print_more(t, view, &l, out);
        if (i == t->shown)
            l.name_width = 0; /* a foot with words is not cut */
        if (table_row(t, i, cells))
            print_row(&l, cells, out);
        cells_release(cells);
    }
    for (unsigned i = 0; i < l.spared_count; i++)
        fprintf(out, "%s%s%s", i ? ", " : "no room for: ", info->columns[l.spared[i]].label,
                i + 1 < l.spared_count ? "" : "; --full shows all\n");
    if (info->text_behind)
        info->text_behind(t, out);
}

void table_print_text(struct table *t, const struct table_view *view, FILE *out)
{
    table_begin(t, view, FORMAT_TEXT);
    if (t->is_there)
        print_table(t, view, out);
    else if (view->is_named && !t->info->is_further) {
        const char *none = t->none ? t->none : t->info->text_none;
        fprintf(out, "\n%s\n  none%s\n", t->info->title ? t->info->title : t->info->name,
                none ? none : "");
    }
    table_end(t);
}
