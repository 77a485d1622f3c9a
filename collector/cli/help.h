/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and manual. Options, settings, tables and topics are rows, a name and a text each, which a
 * function prints for the terminal or as troff. Lists of verbs end with NULL.
 */
#ifndef GPUPROF_COLLECTOR_HELP_H
#define GPUPROF_COLLECTOR_HELP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "table/table.h"

#define HELP_TABLE_BYTES 256 /* of a table's text */

/* Prints a row of a list. */
typedef void item_fn(const char *name, const char *text);

/* ---- rows (help_rows.c) ---- */

/* Prints `text` from column `column` on; the first line begins at `at`. Line breaks stay. */
void print_wrapped(const char *text, size_t at, size_t column);
item_fn print_row;

/* Pass the options of a verb, or the settings, in that group to `item` (or NULL), with `all` also
 * those of HELP_MORE. Return their number. */
unsigned each_option(const struct verb *verb, enum help_group group, bool all, item_fn *item);
unsigned each_setting(enum help_group group, bool all, item_fn *item);

/* A table of the verb's option --table; NULL: no such option, or no more. */
const struct table_info *help_table_at(const struct verb *verb, unsigned index);

/* Writes "GPU idle time by cause", "... (--by=stack)". */
void help_table_about(const struct table_info *info, char *text, size_t text_bytes);

/* Passes on documented columns: "total_ns (total)", the names in JSON and csv, and in text. */
void each_column(const struct table_info *info, item_fn *item);

/* Passes on the tables of --table, each name once, with columns unless `column` is NULL. */
void each_table(const struct verb *verb, item_fn *item, item_fn *column);

/* ---- topics (topics.c) ---- */

/* How to print the rows of a topic. `column` takes columns of tables, for a page of the manual with
 * whole texts; NULL: the short form of help. */
struct topic_rows {
    const struct verb *const *verbs;
    item_fn *item;
    item_fn *column;
};

struct topic {
    const char *name;
    const char *title;
    const char *about;                           /* printed above the rows */
    void (*each)(const struct topic_rows *rows); /* NULL: the pairs are the rows */
    const char *const (*pairs)[2];
    size_t pair_bytes;
};

extern const struct topic topics[]; /* the last has no name */

/* The topic of that name; NULL: none. */
const struct topic *topic_find(const char *name);
void topic_each(const struct topic *topic, const struct topic_rows *rows);
bool help_finding(const char *name); /* false: no such finding */

/* ---- troff on stdout (manual_parts.c) ---- */

void roff_text(const char *text);
item_fn roff_item, roff_column;

/* Examples, variables, files and exit statuses of a verb; `heading` is the macro for titles. */
void roff_parts(const struct verb *verb, const char *heading);
void roff_sections(void);
enum exit_code manual_of_header(void);

/* ---- for main (manual.c) ---- */

/* Prints examples and the usual options of a verb, or with `all` all options; NULL: the verbs. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all);

/* Prints what gpuprof is and how to start, on stdout, if no verb was named. Returns EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Reports an unknown verb after `before`, with a suggestion. Returns EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

#endif
