/* SPDX-License-Identifier: Apache-2.0 */
/* Options, settings and tables as rows of help and of the manual: a name and a text each. */
#ifndef GPUPROF_COLLECTOR_HELP_ROWS_H
#define GPUPROF_COLLECTOR_HELP_ROWS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "table/table.h"

#define HELP_TABLE_BYTES 256 /* of a table's text */

/* Prints a row of a list. */
typedef void item_fn(const char *name, const char *text);

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

#endif
