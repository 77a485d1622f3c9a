/* SPDX-License-Identifier: Apache-2.0 */
/* Help and manual texts. Lists of verbs end with NULL. */
#ifndef GPUPROF_COLLECTOR_MANUAL_H
#define GPUPROF_COLLECTOR_MANUAL_H

#include "base/options.h"

/* Prints examples and the usual options of a verb, or with `all` all options; NULL: the verbs. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all);

/* Prints what gpuprof is and how to start, on stdout, if no verb was named. Returns EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Reports an unknown verb after `before`, with a suggestion. Returns EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

/* Prints a row of a list. */
typedef void item_fn(const char *name, const char *text);

/* Print parts of help on stdout. print_wrapped: `text` from column `column` on; the first line
 * begins at `at`, and line breaks in `text` stay. print_row: a row of a list. each_table: the
 * tables of a verb's --table, each name once, with their columns unless `column` is NULL. */
void print_wrapped(const char *text, size_t at, size_t column);
item_fn print_row;
void each_table(const struct verb *verb, item_fn *item, item_fn *column);

/* Passes the settings of that group to `item` (or NULL), with `all` also those of HELP_MORE.
 * Returns their number. */
unsigned each_setting(enum help_group group, bool all, item_fn *item);

/* (topics.c) Topics of help besides verbs; the last row has no name. */
struct topic {
    const char *name;
    const char *title;
    const char *about; /* printed above the rows */
    void (*each)(const struct verb *const *verbs, item_fn *item, bool is_whole);
};

extern const struct topic topics[];

/* The topic of that name; NULL: none. */
const struct topic *topic_find(const char *name);
void help_topic(const struct verb *const *verbs, const struct topic *topic);
bool help_finding(const char *name); /* false: no such finding */
enum exit_code manual_of_topic(const struct verb *const *verbs, const struct topic *topic);

/* (manual_parts.c) Parts of the manual, as troff on stdout. */
void roff_text(const char *text);
item_fn roff_item, roff_column;

/* Examples, variables, files and exit statuses of a verb; `heading` is the macro for titles. */
void roff_parts(const struct verb *verb, const char *heading);
void roff_sections(void);
enum exit_code manual_of_header(void);

#endif
