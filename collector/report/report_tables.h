/* SPDX-License-Identifier: Apache-2.0 */
/* Which tables there are, and which of them somebody wants to see. */
#ifndef GPUPROF_COLLECTOR_REPORT_TABLES_H
#define GPUPROF_COLLECTOR_REPORT_TABLES_H

#include "report/report.h"
#include "table/table.h"

#define REPORT_TABLES_MAX 64
#define REPORT_ROWS       10 /* of a table of the text, unless told more */

/* Fills `tables`, of REPORT_TABLES_MAX, in the order of JSON and csv; their number. Those of one
 * name stand side by side. */
unsigned report_tables(const struct report *r, struct table *tables);

/* Puts them into the order of the text, or that in which they were asked for. */
void report_tables_order(const struct report_view *v, struct table *tables, unsigned count);

/* One of the tables that there are; NULL: there are no more. */
const struct table_info *report_table_at(unsigned index);

/* Is one of these tables asked for by its name? */
bool report_names(const struct report_view *v, const struct table_info *infos, unsigned count);

/* What a report of that form and recording needs none of (enum report_part): what the recording has
 * nothing of; as text or csv, the first screen included, all that is not named; and of the text
 * without any options the numbers that only --full shows. */
unsigned report_leaves(const struct report_view *v, enum report_format format,
                       const struct recording *rec);

/* The tables of sums that it shows, if it shows nothing but some that are made of resolved events
 * alone (bits of enum sums_table); 0: there is more to it. */
uint64_t report_only(const struct report_view *v, enum report_format format);

/* What it shows of that which is in no part of a report: enum part_missing. */
unsigned report_needs(const struct report_view *v, enum report_format format);

/* Does it show nothing of where calls hang? */
bool report_leaves_hangs(const struct report_view *v, enum report_format format);

/* Does a report of that form have the table? */
bool report_wants(const struct report_view *v, const struct table_info *info,
                  enum report_format format);

/* EXIT_OK, or EXIT_USAGE after one line: an unknown table, or a column that those named have not.
 */
enum exit_code report_view_check(const struct report_view *v, enum report_format format);

/* The same of a column that no table has, where none is named: which there are the report knows. */
enum exit_code report_sort_check(const struct report *r, const struct report_view *v,
                                 enum report_format format);

#endif
