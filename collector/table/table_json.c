/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as members of a JSON object: a list of objects, a row each. */

#include "base/json_text.h"
#include "table/table.h"

static void print_cell(enum column_type type, const struct cell *cell, FILE *out)
{
    if (cell->kind == CELL_NULL)
        fputs("null", out);
    else if (cell->kind == CELL_REAL)
        fprintf(out, type == COLUMN_SHARE ? "%.4f" : "%.6f", cell->real);
    else if (cell->kind == CELL_TEXT && (type == COLUMN_JSON || type == COLUMN_LIST))
        fputs(cell->text, out);
    else if (cell->kind == CELL_TEXT)
        json_put("", cell->text, out);
    else if (type == COLUMN_BOOL)
        fputs(cell->number ? "true" : "false", out);
    else if (type == COLUMN_NUMBER) /* the number of an error may be negative */
        fprintf(out, "%lld", (long long)cell->number);
    else
        fprintf(out, "%llu", (unsigned long long)cell->number);
}

static void print_row(const struct table_info *info, const struct cell *cells, FILE *out)
{
    const char *separator = "{";
    for (unsigned i = 0; i < info->column_count; i++) {
        if (!info->columns[i].key || cells[i].kind == CELL_NONE)
            continue;
        fprintf(out, "%s\"%s\": ", separator, info->columns[i].key);
        print_cell(info->columns[i].type, &cells[i], out);
        separator = ", ";
    }
    fputc('}', out);
}

static void print_rows(const struct table *t, FILE *out)
{
    uint32_t printed = 0;
    fprintf(out, "\"%s\": ", t->info->key);
    for (uint32_t i = 0; i <= t->shown && !ferror(out); i++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        if (table_row(t, i, FORMAT_JSON, cells)) {
            fputs(printed++ ? ",\n" : "[\n", out);
            print_row(t->info, cells, out);
        }
        cells_release(cells);
    }
    fputs(printed ? "\n]" : t->info->json_empty ? t->info->json_empty : "[\n]", out);
    if (t->shown < t->rows)
        fprintf(out, ",\n\"%s_left_out\": %u", t->info->key, t->rows - t->shown);
}

int table_print_json(struct table *t, const struct table_view *view, FILE *out)
{
    int error = table_begin(t, view, FORMAT_JSON);
    if (error == 0 && (t->is_there || view->is_named)) {
        fputs(",\n", out);
        if (t->info->json_before)
            t->info->json_before(t, out);
        print_rows(t, out);
        if (t->info->json_behind)
            t->info->json_behind(t, out);
    }
    table_end(t);
    return error;
}
