/* SPDX-License-Identifier: Apache-2.0 */
/* The report's tables of sums in an SQLite export: GPUPROF_ and their name, with the columns that
 * their JSON has. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "error.h"
#include "export/sqlite_writer.h"

#define COLUMNS_BYTES 2048 /* "calls INTEGER, ..." */

static const char *type_of(const struct column *c)
{
    switch (c->type) {
    case COLUMN_TEXT:
    case COLUMN_LINES:
    case COLUMN_JSON:
    case COLUMN_LIST: return "TEXT";
    case COLUMN_SHARE:
    case COLUMN_FINE_SHARE:
    case COLUMN_RATE: return "REAL";
    default: return "INTEGER";
    }
}

static bool has_column(const struct column *c)
{
    return c->key && c->doc;
}

static int make_table(struct export_writer *w, const struct table_info *info)
{
    char name[SQL_NAME_BYTES] = "", columns[COLUMNS_BYTES] = "";
    size_t length = 0;
    snprintf(name, sizeof name, "GPUPROF_%s", info->is_further ? info->key : info->name);
    for (char *p = name; *p; p++)
        *p = (char)toupper((unsigned char)*p);
    for (unsigned i = 0; i < info->column_count && length < sizeof columns; i++)
        if (has_column(&info->columns[i]))
            length += (size_t)snprintf(columns + length, sizeof columns - length, "%s%s %s",
                                       length ? ", " : "", info->columns[i].key,
                                       type_of(&info->columns[i]));
    return sql_base_add_table(w->base, name, columns);
}

static int put_row(struct export_writer *w, const struct table *t, uint32_t place)
{
    struct cell cells[TABLE_COLUMNS_MAX];
    struct sql_value row[TABLE_COLUMNS_MAX] = {0};
    unsigned count = 0;
    table_row(t, place, FORMAT_JSON, cells);
    for (unsigned i = 0; i < t->info->column_count; i++) {
        if (!has_column(&t->info->columns[i]))
            continue;
        if (cells[i].kind == CELL_NUMBER)
            row[count] = sql_integer(cells[i].number);
        else if (cells[i].kind == CELL_REAL)
            row[count] = sql_real(cells[i].real);
        else if (cells[i].kind == CELL_TEXT)
            row[count] = sql_recorded(cells[i].text);
        count++;
    }
    int error = sql_base_add_row(w->base, row, count);
    cells_release(cells);
    return error;
}

int sqlite_sums(struct export_writer *w, struct sums *s)
{
    if (!s->info || (!sums_has_consumer(s) && !sums_is_of_rows(s->info) && !s->owner))
        return 0;
    struct table t = {.info = &s->info->table, .source = s};
    int error = make_table(w, t.info);
    if (error == 0)
        error = table_begin(&t, &(struct table_view){.limit = ROWS_UNLIMITED}, FORMAT_JSON);
    for (uint32_t i = 0; error == 0 && i < t.shown; i++)
        error = put_row(w, &t, i);
    table_end(&t);
    return error;
}
