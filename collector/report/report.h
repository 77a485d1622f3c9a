/* SPDX-License-Identifier: Apache-2.0 */
/* What a report has found (analyse/report_make.h), as text, JSON or csv. */
#ifndef GPUPROF_COLLECTOR_REPORT_H
#define GPUPROF_COLLECTOR_REPORT_H

#include <stdio.h>

#include "analyse/failures.h"
#include "analyse/report_make.h"
#include "table/table.h"

/* How a report is wanted: which tables, and what of them. */
struct report_view {
    enum report_by by;
    const char *tables; /* names, with commas between; NULL: those that tell most, or all */
    bool is_full;       /* all tables, if none is named */
    struct table_view how;
};

/* What report_make has found, as text for people, or as JSON. 0 or GPUPROF_NO_MEMORY. */
int report_print_text(const struct report *r, const struct report_view *v, FILE *out);
int report_print_json(const struct report *r, const struct report_view *v, FILE *out);

/* Its tables as csv: see tables_write_csv. */
enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room);

/*
 * Writes the report as a page. The walk has been through all, and may be repeated (event_walk.h).
 * 0, or an error after one line on stderr.
 */
typedef int report_page_fn(struct report *r, const struct report_view *v,
                           const struct options *options, FILE *out);

/* Of a struct report: a row for each host, how its clock was put on that of others (host_clocks.h);
 * what the recording lost, and what else it says of itself; and the dumps of flight recorders (run
 * --flight). JSON has losses in a form of its own, and so they have no key; the text ends with
 * them. (clock_report.c, loss_report.c, dumps.c) */
extern const struct table_info clocks_table, losses_table, dumps_table;

/* "a step was slow: step 57 took 81.2 ms, 4.1 x the median": why a dump was written; the caller
 * frees it. NULL: no memory. */
char *dump_line(const struct process_dump *d);

/* The last dump of all processes, and how many there are; NULL: none. */
const struct process_dump *dumps_last(const struct recording *rec, uint64_t *count);

/* About ten lines; the first `function_count` functions only, where nothing is known of devices.
 * 0 or GPUPROF_NO_MEMORY. */
int report_print_summary(const struct report *r, unsigned function_count, FILE *out);

#endif
