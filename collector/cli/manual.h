/* SPDX-License-Identifier: Apache-2.0 */
/* What is said of verbs, of those in `verbs`, which NULL ends. */
#ifndef GPUPROF_COLLECTOR_MANUAL_H
#define GPUPROF_COLLECTOR_MANUAL_H

#include "base/options.h"

/* Prints two examples and the usual options of the verb of that name, or all options; NULL: the
 * verbs. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all);

/* What gpuprof is and how to begin, on stdout, for who has named no verb. EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Says, behind `before`, that there is no such verb, and what it may have been. EXIT_USAGE. */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *name);

/* Takes a row of a list: prints it. */
typedef void item_fn(const char *name, const char *text);

/* Pieces of help, on stdout: words of `text` from column `column` on, the first line beginning at
 * `at`, each of its own lines on a line; a row of a list; the tables of a verb's --table, each name
 * once, with their columns unless `column` is NULL. */
void print_wrapped(const char *text, size_t at, size_t column);
item_fn print_row;
void each_table(const struct verb *verb, item_fn *item, item_fn *column);

/* The settings of that group, without those of HELP_MORE unless `all`; how many they are. `item`
 * may be NULL. */
unsigned each_setting(enum help_group group, bool all, item_fn *item);

/* (topics.c) What help explains besides verbs; the last row has no name. */
struct topic {
    const char *name;
    const char *title;
    const char *about; /* said above the rows */
    void (*each)(const struct verb *const *verbs, item_fn *item, bool is_whole);
};

extern const struct topic topics[];

/* NULL: there is none of that name. */
const struct topic *topic_find(const char *name);
void help_topic(const struct verb *const *verbs, const struct topic *topic);
bool help_finding(const char *name); /* false: there is none of that name */
enum exit_code manual_of_topic(const struct verb *const *verbs, const struct topic *topic);

/* (manual_parts.c) Pieces of the manual, as troff on stdout. */
void roff_text(const char *text);
item_fn roff_item, roff_column;

/* Examples, variables, files and exit statuses of a verb; `heading` is the macro, with what follows
 * it, of a part's title. */
void roff_parts(const struct verb *verb, const char *heading);
void roff_sections(void);
enum exit_code manual_of_header(void);

#endif
