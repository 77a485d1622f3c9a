/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for programs: members of a JSON object, lists of objects, and csv with the same
 * columns. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "base/message.h"
#include "base/text.h"
#include "error.h"
#include "output/output.h"
#include "table/table.h"

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
        if (cells[i].kind == CELL_TEXT && is_json(c->type))
            fputs(cells[i].text, out);
        else if (cells[i].kind == CELL_TEXT)
            json_printf(out, "%s", cells[i].text);
        else if (cells[i].kind == CELL_NULL)
            fputs("null", out);
        else
            print_number(c->type, &cells[i], out);
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
            char *json = is_json(c->type) ? memory_text(its) : json_string(its, strlen(its));
            char *text = json ? csv_string(json) : NULL;
            fputs(text ? text : "\"?\"", out);
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
