/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "base/memory.h"
#include "export/sqlite_tables.h"

#define DATABASE    "gpuprof" /* our name for SQLite's way to files */
#define SQL_BYTES   4096      /* longest statement that creates a table */
#define VALUE_BYTES 8         /* of a value besides text, in the bound on the output */

struct sql_definition {
    const char *name;
    const char *definition; /* its columns, with a comma before them */
    unsigned columns;
};

static const struct sql_definition tables[] = {
#define COLUMN(name, type, value)              "," name " " type
#define EMPTY(count, columns)                  "," columns
#define TABLE(NAME, name, parameters, columns) {name, columns, NAME##_COLUMNS},
#include "export/sql_tables.def"
};

struct sql_base {
    struct output *out;
    sqlite3_vfs files;
    bool is_registered;
    sqlite3 *database;
    sqlite3_stmt *inserts[SQL_TABLES + 1]; /* the last: of the most recently added table; NULL: not
                                            * prepared yet */
    char added[SQL_NAME_BYTES];            /* its name */
};

struct sql_value sql_text(const char *text)
{
    return (struct sql_value){.kind = SQL_TEXT, .text = text, .bytes = strlen(text)};
}

struct sql_value sql_recorded(const char *text)
{
    return (struct sql_value){
        .kind = text ? SQL_RECORDED : SQL_NULL, .text = text, .bytes = text ? strlen(text) : 0};
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The name of an open file is not resolved, since the output's has none yet. */
static int files_full_name(sqlite3_vfs *files, const char *name, int bytes, char *full)
{
    (void)files;
    snprintf(full, (size_t)bytes, "%s", name);
    return SQLITE_OK;
}

static int open_linked(const char *name, int flags, int mode)
{
    return open(name, flags & ~O_NOFOLLOW, mode);
}

/* Opens the output's file once more, without locks. */
static int open_database(struct sql_base *b)
{
    const sqlite3_vfs *system = sqlite3_vfs_find("unix-none");
    char name[64];
    if (!system)
        return SQLITE_ERROR;
    b->files = *system;
    b->files.pNext = NULL;
    b->files.zName = DATABASE;
    b->files.xFullPathname = files_full_name;
    b->files.xSetSystemCall(&b->files, "open", (sqlite3_syscall_ptr)open_linked);
    b->is_registered = sqlite3_vfs_register(&b->files, 0) == SQLITE_OK;
    snprintf(name, sizeof name, "/proc/self/fd/%d", b->out->fd);
    return sqlite3_open_v2(name, &b->database, SQLITE_OPEN_READWRITE, DATABASE);
}

/* ---- tables and rows ------------------------------------------------------------------------- */

/* Notes an error that SQLite returned as one of the output. */
static void note(struct sql_base *b, int said)
{
    if (said == SQLITE_NOMEM)
        memory_missing();
    /* SQLite leaves errno as it found it after a failed write. */
    if (said != SQLITE_OK && !b->out->error)
        b->out->error = said == SQLITE_FULL ? ENOSPC : errno ? errno : EIO;
}

static void sql_base_run(struct sql_base *b, const char *sql)
{
    if (!b->out->error)
        note(b, sqlite3_exec(b->database, sql, NULL, NULL, NULL));
}

static void sql_base_make_table(struct sql_base *b, const char *name, const char *columns)
{
    char sql[SQL_BYTES];
    int length = snprintf(sql, sizeof sql, "CREATE TABLE %s (%s)", name, columns);
    assert((size_t)length < sizeof sql);
    (void)length;
    sql_base_run(b, sql);
}

struct sql_base *sql_base_create(struct output *out)
{
    char settings[256];
    struct sql_base *b = memory_new(1, sizeof *b);
    b->out = out;
    note(b, open_database(b));
    snprintf(settings, sizeof settings,
             "PRAGMA locking_mode=EXCLUSIVE; PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; "
             "PRAGMA temp_store=MEMORY; PRAGMA cache_size=-%d; BEGIN",
             SQL_CACHE_KIB);
    sql_base_run(b, settings);
    for (unsigned i = 0; i < SQL_LATE; i++)
        sql_base_make_table(b, tables[i].name, tables[i].definition + 1);
    return b;
}

static sqlite3_stmt *insert_of(struct sql_base *b, const char *name, unsigned columns,
                               sqlite3_stmt **insert)
{
    char sql[256];
    if (*insert)
        return *insert;
    int length = snprintf(sql, sizeof sql, "INSERT INTO %s VALUES (?", name);
    for (unsigned i = 1; i < columns; i++)
        length += snprintf(sql + length, sizeof sql - (size_t)length, ",?");
    snprintf(sql + length, sizeof sql - (size_t)length, ")");
    (void)sqlite3_prepare_v3(b->database, sql, -1, SQLITE_PREPARE_PERSISTENT, insert, NULL);
    return *insert;
}

static int sql_base_bind(sqlite3_stmt *insert, int place, const struct sql_value *v)
{
    switch ((enum sql_kind)v->kind) {
    case SQL_INTEGER: return sqlite3_bind_int64(insert, place, v->integer);
    case SQL_REAL: return sqlite3_bind_double(insert, place, v->real);
    case SQL_TEXT:
        return sqlite3_bind_text64(insert, place, v->text, v->bytes, SQLITE_STATIC, SQLITE_UTF8);
    case SQL_RECORDED: {
        char *clean = memory_from(json_clean(v->text, v->bytes));
        return sqlite3_bind_text(insert, place, clean, -1, free);
    }
    default: return SQLITE_OK; /* NULL */
    }
}

static void sql_base_put_row(struct sql_base *b, const char *name, unsigned columns,
                             sqlite3_stmt **its, const struct sql_value *row)
{
    if (b->out->error)
        return;
    sqlite3_stmt *insert = insert_of(b, name, columns, its);
    int said = insert ? sqlite3_clear_bindings(insert) : sqlite3_errcode(b->database);
    uint64_t bytes = 0;
    for (unsigned i = 0; said == SQLITE_OK && i < columns; i++) {
        said = sql_base_bind(insert, (int)i + 1, &row[i]);
        bytes += row[i].kind == SQL_NULL ? 0 : VALUE_BYTES + row[i].bytes;
    }
    if (b->out->room && bytes > *b->out->room)
        b->out->error = OUTPUT_BEYOND;
    else if (b->out->room)
        *b->out->room -= bytes;
    if (said == SQLITE_OK) {
        sqlite3_step(insert);
        said = sqlite3_reset(insert);
    }
    note(b, said);
}

void sql_base_insert(struct sql_base *b, enum sql_table table, const struct sql_value *row)
{
    const struct sql_definition *t = &tables[table];
    if (table >= SQL_LATE && !b->inserts[table])
        sql_base_make_table(b, t->name, t->definition + 1);
    sql_base_put_row(b, t->name, t->columns, &b->inserts[table], row);
}

void sql_base_add_table(struct sql_base *b, const char *name, const char *columns)
{
    sqlite3_finalize(b->inserts[SQL_TABLES]);
    b->inserts[SQL_TABLES] = NULL;
    snprintf(b->added, sizeof b->added, "%s", name);
    sql_base_make_table(b, name, columns);
}

void sql_base_add_row(struct sql_base *b, const struct sql_value *row, unsigned count)
{
    sql_base_put_row(b, b->added, count, &b->inserts[SQL_TABLES], row);
}

void sql_base_free(struct sql_base *b)
{
    sql_base_run(b, "COMMIT");
    for (unsigned i = 0; i <= SQL_TABLES; i++)
        sqlite3_finalize(b->inserts[i]);
    sqlite3_close(b->database);
    if (b->is_registered)
        sqlite3_vfs_unregister(&b->files);
    free(b);
}
