/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite database with the tables of sql_tables.def and those that are added, written once, in
 * one transaction, and never read again. It has no journal: its file has no name before it is whole
 * (output.h). SQLite does no input or output of its own, but by way of the output, where the first
 * error sticks. Values are bound, so that no text of a recording is ever SQL.
 *
 * Memory: SQLite's pages, SQL_CACHE_KIB at most, and a prepared statement for each table.
 */
#ifndef GPUPROF_COLLECTOR_SQL_BASE_H
#define GPUPROF_COLLECTOR_SQL_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "output/output.h"

#define SQL_CACHE_KIB  16384
#define SQL_NAME_BYTES 64 /* of a table that is added */

enum sql_table {
#define COLUMN(...)
#define EMPTY(...)
#define TABLE(NAME, ...) SQL_##NAME,
#include "export/sql_tables.def"
    SQL_TABLES
};
#define SQL_LATE SQL_OSRT /* it and those behind it are made with their first row */

/* How many columns each has. */
#define COLUMN(...)                            +1
#define EMPTY(count, columns)                  +(count)
#define TABLE(NAME, name, parameters, columns) enum { NAME##_COLUMNS = 0 columns };
#include "export/sql_tables.def"

enum sql_kind { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_RECORDED };

/* Zeros: NULL. */
struct sql_value {
    uint8_t kind; /* enum sql_kind */
    union {
        int64_t integer;
        double real;
        const char *text; /* a view; UTF-8 */
    };
    size_t bytes; /* of the text */
};

static inline struct sql_value sql_integer(uint64_t value)
{
    return (struct sql_value){.kind = SQL_INTEGER, .integer = (int64_t)value};
}

/* NULL where there is none: 0. */
static inline struct sql_value sql_integer_or_null(uint64_t value)
{
    return (struct sql_value){.kind = value ? SQL_INTEGER : SQL_NULL, .integer = (int64_t)value};
}

static inline struct sql_value sql_real(double value)
{
    return (struct sql_value){.kind = SQL_REAL, .real = value};
}

/* Views of `text`, which must stay until the row is inserted. The second: of a recording, which may
 * be anything and is cleaned then; NULL stays NULL. */
struct sql_value sql_text(const char *text);
struct sql_value sql_recorded(const char *text);

struct sql_base;

/* Makes the tables in the file of `out`, which must stay. NULL: no memory, or out->error. */
struct sql_base *sql_base_create(struct output *out);

/* A row of so many values as the table has columns. 0 or GPUPROF_NO_MEMORY; what could not be
 * written is out->error. */
int sql_base_insert(struct sql_base *b, enum sql_table table, const struct sql_value *row);

/* Makes one more table, of columns as SQL has them ("name TEXT, calls INTEGER"); rows of `count`
 * values go to the last that was made. Likewise. */
int sql_base_add_table(struct sql_base *b, const char *name, const char *columns);
int sql_base_add_row(struct sql_base *b, const struct sql_value *row, unsigned count);

/* Everything is in the file; likewise. Nothing may be inserted any more. */
int sql_base_finish(struct sql_base *b);
void sql_base_free(struct sql_base *b);

#endif
