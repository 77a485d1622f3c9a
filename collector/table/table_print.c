/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables: as text, as members of a JSON object (lists of objects), and as csv with the same
 * columns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/message.h"
#include "base/text.h"
#include "output/output.h"
#include "table/screen.h"
#include "table/table.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* Numeric columns of fixed width, a space before each, and the name last. On a narrow terminal,
 * names are cut in the middle and spare columns are dropped: first those that are 0 in all rows,
 * from the right. */

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
    for (unsigned spare = 0; width && spare <= SPARE_MAX; spare++)
        for (unsigned i = l.count; i-- > 0 && table_text_measure(&l) + wanted > width;) {
            unsigned its = info->columns[l.shown[i]].spare;
            if (spare ? its == spare : its && !(telling >> l.shown[i] & 1))
                leave_out(&l, i);
        }
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
    const char *text = clean ? clean : cell->text ? cell->text : "?";
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

/* ---- rows for programs ----------------------------------------------------------------------- */

typedef void print_row_fn(const struct table *t, const struct cell *cells, uint32_t before,
                          FILE *out);

static uint32_t print_rows(const struct table *t, print_row_fn *print, FILE *out)
{
    uint32_t printed = 0;
    for (uint32_t i = 0; i <= t->shown && !ferror(out); i++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        if (table_row(t, i, cells))
            print(t, cells, printed++, out);
        cells_release(cells);
    }
    return printed;
}

static bool is_json(enum column_type type)
{
    return type == COLUMN_JSON || type == COLUMN_LIST;
}

static void print_number(enum column_type type, const struct cell *cell, FILE *out)
{
    if (cell->kind == CELL_REAL)
        fprintf(out, type == COLUMN_SHARE ? "%.4f" : "%.6f", cell->real);
    else if (type == COLUMN_BOOL)
        fputs(cell->number ? "true" : "false", out);
    else if (type == COLUMN_NUMBER) /* an error number may be negative */
        fprintf(out, "%lld", (long long)cell->number);
    else
        fprintf(out, "%llu", (unsigned long long)cell->number);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void cell_print_json(const struct column *c, const struct cell *cell, json_put_fn *put, FILE *out)
{
    if (cell->kind == CELL_TEXT && is_json(c->type))
        fputs(cell->text, out);
    else if (cell->kind == CELL_TEXT)
        put(cell->text, out);
    else if (cell->kind > CELL_NULL)
        print_number(c->type, cell, out);
    else
        fputs("null", out);
}

static void print_json_row(const struct table *t, const struct cell *cells, uint32_t before,
                           FILE *out)
{
    const struct table_info *info = t->info;
    const char *separator = before ? ",\n{" : "[\n{";
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        if (!c->key || cells[i].kind == CELL_NONE)
            continue;
        fprintf(out, "%s\"%s\": ", separator, c->key);
        separator = ", ";
        cell_print_json(c, &cells[i], json_put, out);
    }
    fputc('}', out);
}

void table_print_json(struct table *t, const struct table_view *view, FILE *out)
{
    table_begin(t, view, FORMAT_JSON);
    if (t->is_there || view->is_named) {
        fputs(",\n", out);
        if (t->info->json_before)
            t->info->json_before(t, out);
        fprintf(out, "\"%s\": ", t->info->key);
        bool any = print_rows(t, print_json_row, out);
        fputs(any ? "\n]" : "[]", out);
        if (t->shown < t->rows)
            fprintf(out, ",\n\"%s_left_out\": %u", t->info->key, t->rows - t->shown);
        if (t->info->json_behind)
            t->info->json_behind(t, out);
    }
    table_end(t);
}

/* ---- csv ------------------------------------------------------------------------------------- */

/* Tables of sums share column rows: those without a doc are not columns of this table. */
static bool has_csv_column(const struct table *t, unsigned i)
{
    const struct column *columns = t->info->columns;
    return columns[i].key && (columns[i].doc || !columns[0].doc) && !(t->without >> i & 1);
}

static void print_csv_row(const struct table *t, const struct cell *cells, uint32_t before,
                          FILE *out)
{
    const struct table_info *info = t->info;
    const char *separator = "";
    (void)before;
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        if (!has_csv_column(t, i))
            continue;
        fputs(separator, out);
        separator = ",";
        if (cells[i].kind == CELL_TEXT) {
            const char *its = cells[i].text;
            char *json = is_json(c->type) ? NULL : json_string(its, strlen(its));
            char *text = csv_string(json ? json : its);
            fputs(text, out);
            free(text);
            free(json);
        } else if (cells[i].kind > CELL_NULL) {
            print_number(c->type, &cells[i], out);
        }
    }
    fputc('\n', out);
}

static const char *csv_name(const struct table_info *info)
{
    return info->csv_name ? info->csv_name : info->key;
}

static void print_csv(const struct table *t, bool is_block, FILE *out)
{
    const char *separator = "";
    if (is_block)
        fprintf(out, "# %s\n", csv_name(t->info));
    for (unsigned i = 0; i < t->info->column_count; i++) {
        if (!has_csv_column(t, i))
            continue;
        fprintf(out, "%s%s", separator, t->info->columns[i].key);
        separator = ",";
    }
    fputc('\n', out);
    print_rows(t, print_csv_row, out);
    if (is_block)
        fputc('\n', out);
}

static bool has_csv(const struct table *t, const struct table_view *view)
{
    return view->is_named || (t->is_there && t->shown);
}

/* Writes all tables to one file. */
static enum exit_code table_rows_write_file(struct table *tables, unsigned count,
                                            const struct table_view *view, bool is_block,
                                            const char *path, uint64_t *room)
{
    struct output out;
    enum exit_code code = verb_output_open(&out, path, room);
    if (code != EXIT_OK)
        return code;
    for (unsigned i = 0; i < count; i++) {
        table_begin(&tables[i], view, FORMAT_JSON);
        if (has_csv(&tables[i], view))
            print_csv(&tables[i], is_block, out.stream);
        table_end(&tables[i]);
    }
    return verb_output_close(&out, path, 0);
}

/* Writes each visible table to DIR/NAME.csv. */
static enum exit_code write_files(struct table *tables, unsigned count,
                                  const struct table_view *view, const char *folder, uint64_t *room)
{
    const char *slash = folder[strlen(folder) - 1] == '/' ? "" : "/";
    enum exit_code code = EXIT_OK;
    for (unsigned i = 0; code == EXIT_OK && i < count; i++) {
        table_begin(&tables[i], view, FORMAT_JSON);
        bool is_seen = has_csv(&tables[i], view);
        table_end(&tables[i]);
        char *path = text_printf("%s%s%s.csv", folder, slash, csv_name(tables[i].info));
        if (is_seen)
            code = table_rows_write_file(&tables[i], 1, view, false, path, room);
        free(path);
    }
    return code;
}

enum exit_code tables_write_csv(struct table *tables, unsigned count, const struct table_view *view,
                                const char *path, uint64_t *room)
{
    struct stat status;
    bool is_there = path && stat(path, &status) == 0;
    bool is_new = !is_there && path && *path && path[strlen(path) - 1] == '/';
    if (!is_new && !(is_there && S_ISDIR(status.st_mode)))
        return table_rows_write_file(tables, count, view, count > 1 || !view->is_named, path, room);
    if (is_new && mkdir(path, 0777) < 0) {
        message("%s: %s%s", path, strerror(errno), writing_advice(errno));
        return EXIT_ENVIRONMENT;
    }
    enum exit_code code = write_files(tables, count, view, path, room);
    if (is_new)
        rmdir(path); /* if it stayed empty */
    return code;
}
