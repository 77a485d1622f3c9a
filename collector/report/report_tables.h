/* SPDX-License-Identifier: Apache-2.0 */
/* The list of all tables, and which of them a report shows. */
#ifndef GPUPROF_COLLECTOR_REPORT_TABLES_H
#define GPUPROF_COLLECTOR_REPORT_TABLES_H

#include "report/report.h"
#include "table/table.h"

#define REPORT_TABLES_MAX 64
#define REPORT_ROWS       10 /* rows of a table in text, by default */

/* Fills `tables` (REPORT_TABLES_MAX items) in the order of JSON and csv; returns the number. Tables
 * of one name are neighbours. */
unsigned report_tables(const struct report *r, struct table *tables);

/* Sorts the tables into the order of the text, or the order in which they were named. */
void report_tables_order(const struct report_view *v, struct table *tables, unsigned count);

/* Returns the declaration of table `index`; NULL: there are no more. */
const struct table_info *report_table_at(unsigned index);

/* Returns whether one of these tables was named. */
bool report_names(const struct report_view *v, const struct table_info *infos, unsigned count);

/* Returns what a report of this format and recording can skip (enum report_part): what the
 * recording has no data for; in text and csv, the first screen included, all that is not named; and
 * in text without options the numbers that only --full shows. */
unsigned report_leaves(const struct report_view *v, const struct recording *rec);

/* If the report shows only tables of sums made from resolved events, returns them as bits of enum
 * sums_table. Returns 0 if it shows more. */
uint64_t report_only(const struct report_view *v);

/* Returns what the report shows that no part has: enum part_missing. */
unsigned report_needs(const struct report_view *v);

/* Returns a named table that needs all events in one place, so that no combination of parts has it;
 * NULL: there is none. */
const struct table_info *report_not_in_parts(const struct report_view *v);

/* Returns whether the report shows nothing about hanging calls. */
bool report_leaves_hangs(const struct report_view *v);

/* Returns whether a report of this format has the table. */
bool report_wants(const struct report_view *v, const struct table_info *info,
                  enum report_format format);

/* Returns EXIT_OK, or EXIT_USAGE after one line about an unknown table, or a column that all shown
 * tables lack. */
enum exit_code report_view_check(const struct report_view *v);

#endif
