/* SPDX-License-Identifier: Apache-2.0 */
/* Data of the report's tables: columns once, then rows as lists. */
#include <stdlib.h>

#include "base/text.h"
#include "page/page.h"
#include "report/report.h"

#define ROWS_MAX        5000
#define TABLE_BYTES_MAX (3u << 20) /* approximate: the last row is written whole */
#define ALL_BYTES_MAX   (7u << 20)

static const char *const types[] = {
    [COLUMN_TEXT] = "text",     [COLUMN_LINES] = "lines",      [COLUMN_COUNT] = "count",
    [COLUMN_NS] = "ns",         [COLUMN_BYTES] = "bytes",      [COLUMN_AMOUNT] = "amount",
    [COLUMN_SHARE] = "share",   [COLUMN_FINE_SHARE] = "share", [COLUMN_RATE] = "rate",
    [COLUMN_NUMBER] = "number", [COLUMN_BOOL] = "bool",        [COLUMN_JSON] = "json",
    [COLUMN_LIST] = "list",     [COLUMN_POWER] = "number",     [COLUMN_ENERGY] = "number",
};

static void put_columns(const struct table_info *info, struct page_data *d)
{
    const char *separator = "";
    for (unsigned i = 0; i < info->column_count; i++) {
        const struct column *c = &info->columns[i];
        if (!c->key)
            continue;
        fputs(separator, d->stream);
        page_printf(d, "{\"key\": %s, \"type\": %s, \"label\": %s, \"doc\": %s}", c->key,
                    types[c->type], c->label, c->doc);
        separator = ", ";
    }
}

static void put_cell(enum column_type type, const struct cell *cell, struct page_data *d)
{
    if (cell->kind == CELL_REAL)
        fprintf(d->stream, "%.6g", cell->real);
    else if (cell->kind == CELL_TEXT && (type == COLUMN_JSON || type == COLUMN_LIST))
        fputs(cell->text, d->stream);
    else if (cell->kind == CELL_TEXT)
        page_printf(d, "%s", cell->text);
    else if (cell->kind == CELL_NUMBER && type == COLUMN_NUMBER) /* may be negative */
        fprintf(d->stream, "%lld", (long long)cell->number);
    else if (cell->kind == CELL_NUMBER)
        fprintf(d->stream, "%llu", (unsigned long long)cell->number);
    else
        fputs("null", d->stream);
}

static void page_tables_put_row(const struct table_info *info, const struct cell *cells,
                                struct page_data *d)
{
    const char *separator = "[";
    for (unsigned i = 0; i < info->column_count; i++) {
        if (!info->columns[i].key)
            continue;
        fputs(separator, d->stream);
        put_cell(info->columns[i].type, &cells[i], d);
        separator = ",";
    }
    fputc(']', d->stream);
}

/* Writes a note that the text has before or after the table. */
static void put_note(const char *before, void (*print)(const struct table *, FILE *),
                     const struct table *t, struct page_data *d)
{
    struct new_text made;
    FILE *note = print ? new_text_begin(&made) : NULL;
    if (note)
        print(t, note);
    char *text = note ? new_text_end(&made, note) : NULL;
    fputs(before, d->stream);
    page_printf(d, "%s", text && *text ? text : NULL);
    free(text);
}

static void put_rows(struct table *t, uint64_t bytes_max, struct page_data *d)
{
    uint64_t before = page_data_written(d);
    uint32_t place = 0;
    for (; place <= t->shown && page_data_written(d) - before <= bytes_max; place++) {
        struct cell cells[TABLE_COLUMNS_MAX];
        if (table_row(t, place, cells)) {
            fputs(place ? ",\n" : "\n", d->stream);
            page_tables_put_row(t->info, cells, d);
        }
        cells_release(cells);
    }
    uint32_t rows = place < t->shown ? place : t->shown;
    fprintf(d->stream, "], \"left_out\": %u", t->rows - rows);
}

void page_put_table(struct table *t, const struct table_view *how, uint64_t bytes_max,
                    const char *separator, struct page_data *d)
{
    table_begin(t, how, FORMAT_JSON);
    if (t->is_there) {
        fputs(separator, d->stream);
        page_printf(d, "\n{\"name\": %s, \"key\": %s, \"title\": %s", t->info->name, t->info->key,
                    t->info->title);
        put_note(", \"note\": ", t->info->text_before, t, d);
        put_note(", \"behind\": ", t->info->text_behind, t, d);
        fputs(",\n\"columns\": [", d->stream);
        put_columns(t->info, d);
        fputs("],\n\"rows\": [", d->stream);
        put_rows(t, bytes_max, d);
        fputc('}', d->stream);
    }
    table_end(t);
}

void page_put_tables(const struct page *p, struct page_data *d)
{
    struct table tables[REPORT_TABLES_MAX];
    struct table_view how = p->view->how;
    unsigned count = report_tables(p->report, tables);
    uint64_t before = page_data_written(d), at = before;
    how.limit = ROWS_MAX;
    fputc('[', d->stream);
    for (unsigned i = 0; i < count; i++) {
        uint64_t left = at - before < ALL_BYTES_MAX ? ALL_BYTES_MAX - (at - before) : 0;
        if (report_wants(p->view, tables[i].info, FORMAT_JSON))
            page_put_table(&tables[i], &how, left < TABLE_BYTES_MAX ? left : TABLE_BYTES_MAX,
                           at > before + 1 ? "," : "", d);
        at = page_data_written(d);
    }
    fputs("\n]", d->stream);
}
