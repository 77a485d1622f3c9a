/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An SQLite database with the tables of sql_tables.def and added ones, written once in one
 * transaction and never read again. It needs no journal: the file has no name until it is complete
 * (output.h). The first error stays in the output. Values are bound, so text from a recording is
 * never SQL. Memory: SQLite's pages, at most SQL_CACHE_KIB, and a prepared statement per table.
 */
#ifndef GPUPROF_COLLECTOR_SQL_BASE_H
#define GPUPROF_COLLECTOR_SQL_BASE_H

#include <stddef.h>
#include <stdint.h>

#include "output/output.h"

#define SQL_CACHE_KIB  16384
#define SQL_NAME_BYTES 64 /* of an added table */

enum sql_table {
#define COLUMN(...)
#define EMPTY(...)
#define TABLE(NAME, ...) SQL_##NAME,
#include "export/sql_tables.def"
    SQL_TABLES
};
#define SQL_LATE SQL_OSRT /* this and later tables are created with their first row */

/* Counts the columns of each table. */
#define COLUMN(...)                            +1
#define EMPTY(count, columns)                  +(count)
#define TABLE(NAME, name, parameters, columns) enum { NAME##_COLUMNS = 0 columns };
#include "export/sql_tables.def"

enum sql_kind { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT, SQL_RECORDED };

/* All zero is NULL. */
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

/* 0 becomes NULL. */
static inline struct sql_value sql_integer_or_null(uint64_t value)
{
    return (struct sql_value){.kind = value ? SQL_INTEGER : SQL_NULL, .integer = (int64_t)value};
}

static inline struct sql_value sql_real(double value)
{
    return (struct sql_value){.kind = SQL_REAL, .real = value};
}

/* Views of `text`, which must stay valid until the row is inserted. The second cleans text from a
 * recording; NULL stays NULL. */
struct sql_value sql_text(const char *text);
struct sql_value sql_recorded(const char *text);

struct sql_base;

/* Creates the tables in the file of `out`, which must outlive it. Returns NULL without memory, or
 * with out->error. */
struct sql_base *sql_base_create(struct output *out);

/* Inserts a row with a value per column. Returns 0 or GPUPROF_NO_MEMORY; write errors are in
 * out->error. */
int sql_base_insert(struct sql_base *b, enum sql_table table, const struct sql_value *row);

/* Creates a further table with these SQL columns ("name TEXT, calls INTEGER"); inserts rows of
 * `count` values into the last one created. Errors likewise. */
int sql_base_add_table(struct sql_base *b, const char *name, const char *columns);
int sql_base_add_row(struct sql_base *b, const struct sql_value *row, unsigned count);

/* Writes everything to the file. No inserts may follow. Errors likewise. */
int sql_base_finish(struct sql_base *b);
void sql_base_free(struct sql_base *b);

#endif
