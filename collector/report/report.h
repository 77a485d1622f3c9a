/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of a report (analyse/report_make.h) as text, JSON or csv. */
#ifndef GPUPROF_COLLECTOR_REPORT_H
#define GPUPROF_COLLECTOR_REPORT_H

#include <stdio.h>

#include "analyse/failures.h"
#include "analyse/report_make.h"
#include "table/table.h"

/* The tables to show, and how. */
struct report_view {
    enum report_by by;
    const char *tables; /* names separated by commas; NULL: the most useful ones, or all */
    bool is_full;       /* show all tables if none is named */
    bool groups;        /* see struct report_request */
    enum report_format format;
    struct table_view how;
};

/* Print the results of report_make as text or JSON. Return 0 or GPUPROF_NO_MEMORY. */
int report_print_text(const struct report *r, const struct report_view *v, FILE *out);
int report_print_json(const struct report *r, const struct report_view *v, FILE *out);

/* Writes the tables as csv, see tables_write_csv. */
enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room);

/*
 * Writes the report as a page. The event walk has been done, and may be repeated (event_walk.h).
 * Returns 0, or an error after one line on stderr.
 */
typedef int report_page_fn(struct report *r, const struct report_view *v,
                           const struct options *options, FILE *out);

/* Tables of a struct report: a row for each host and how its clock was aligned (host_clocks.h);
 * losses and notes of the recording; and the dumps of flight recorders (run --flight). JSON has
 * losses in a form of its own, so that table has no key; the text ends with it. (clock_report.c,
 * loss_report.c, dumps.c) */
extern const struct table_info clocks_table, losses_table, dumps_table;

/* Says why a dump was written: "a step was slow: step 57 took 81.2 ms, 4.1 x the median". The
 * caller frees it. NULL: no memory. */
char *dump_line(const struct process_dump *d);

/* Returns the last dump of all processes and sets *count to their number; NULL: there are none. */
const struct process_dump *dumps_last(const struct recording *rec, uint64_t *count);

/* Prints a summary of about ten lines, with the first `function_count` functions if no device is
 * known. Returns 0 or GPUPROF_NO_MEMORY. */
int report_print_summary(const struct report *r, unsigned function_count, FILE *out);

#endif
