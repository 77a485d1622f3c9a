/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Help and manual. Options, tables and topics are rows, a name and a text each, which a function
 * prints for the terminal or as troff. Lists of verbs end with NULL; the first verb is `run`.
 */
#ifndef GPUPROF_COLLECTOR_HELP_H
#define GPUPROF_COLLECTOR_HELP_H

#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"
#include "table/table.h"

#define INTRO_TEXT                                                                                 \
    "gpuprof shows where a CUDA program spends time and memory, and what to change.\n"             \
    "The program is not changed, and no root rights are needed."
#define UNITS_TEXT                                                                                 \
    "Sizes have K, M, G or T (KB, KiB: the same, 1024 bytes); times ns, us, ms, s, min or h."
#define RUN_OPTIONS_TEXT "It also takes the options of 'gpuprof run'."

/* Prints a row of a list. */
typedef void item_fn(const char *name, const char *text);

/* ---- rows, and help on the terminal (help.c) ---- */

/* Prints `text` from column `column` on; the first line begins at `at`. Line breaks stay. */
void print_wrapped(const char *text, size_t at, size_t column);

/* Passes the options of a verb in that group to `item` (or NULL), with `all` also those of
 * HELP_MORE. Returns their number. */
unsigned each_option(const struct verb *verb, enum help_group group, bool all, item_fn *item);

/* A table of the verb's option --table; NULL: no such option, or no more. */
const struct table_info *help_table_at(const struct verb *verb, unsigned index);

/* Passes on the tables of --table, each name once, with documented columns ("total_ns (total)", the
 * names in JSON and csv, and in text) unless `column` is NULL. */
void each_table(const struct verb *verb, item_fn *item, item_fn *column);

/* NULL: no such verb. */
const struct verb *verb_find(const struct verb *const *verbs, const char *name);

/* Prints examples and the usual options of a verb, or with `all` all options; NULL: the verbs. */
enum exit_code verb_help(const struct verb *const *verbs, const char *name, bool all);

/* Prints what gpuprof is and how to start, on stdout, if no verb was named. Returns EXIT_USAGE. */
enum exit_code verb_missing(const char *command);

/* Reports after `before` that `name` is no `what` ("verb"), with a suggestion. Returns EXIT_USAGE.
 */
enum exit_code verb_unknown(const struct verb *const *verbs, const char *before, const char *what,
                            const char *name);

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

#endif
