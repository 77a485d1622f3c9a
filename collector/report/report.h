/* SPDX-License-Identifier: Apache-2.0 */
/* The verb `report`: prints the results of a report (analyse/report_make.h) as text, JSON, csv or a
 * page, and the summary at the end of `run`. */
#ifndef GPUPROF_COLLECTOR_REPORT_H
#define GPUPROF_COLLECTOR_REPORT_H

#include <stdio.h>

#include "analyse/report_make.h"
#include "base/message.h"
#include "base/options.h"
#include "read/recording.h"
#include "resolve/steps.h"
#include "table/screen.h"
#include "table/table.h"

/* Whether ranges are rows as groups; by default only in text. */
enum report_groups { GROUPS_IN_TEXT, GROUPS_ALWAYS, GROUPS_NEVER };

/* Options that only `report` has. */
struct report_options {
    struct table_options table;
    enum report_by by;
    enum report_groups groups;
    bool is_mine;        /* only the user's own lines (shown_frame.h) */
    const char *source;  /* a folder; NULL: none */
    double step_samples; /* 0: not given */
    bool is_partial;
    const char *share; /* I/N; NULL: taken from the launcher */
    bool is_combined;
};

extern const struct option report_options[];

/* The tables to show, and how. */
struct report_view {
    enum report_by by;
    const char *tables; /* names separated by commas; NULL: the most useful ones, or all */
    bool is_full;       /* show all tables if none is named */
    bool groups;        /* see struct report_request */
    enum report_format format;
    struct table_view how;
};

/*
 * Writes the report as a page. The event walk has been done, and may be repeated (event_walk.h).
 * Returns 0, or an error after one line on stderr.
 */
typedef int report_page_fn(struct report *r, const struct report_view *v,
                           const struct options *options, FILE *out);

/* Runs the verb `report`. `page` writes HTML; it belongs to a layer above. */
enum exit_code report_run(const struct options *options, report_page_fn *page);

/*
 * Writes a summary of about ten lines on the recordings in `paths` (folders or files) to `out`:
 * wall time, processes, calls, the functions with most time, bytes copied, losses. The event walk
 * ends after `walk_ns_max`; the summary then says how much was read. After EXIT_USAGE (no
 * recording) nothing was written.
 */
enum exit_code report_summary(char **paths, int path_count, uint64_t walk_ns_max,
                              const struct next_words *next, FILE *out);

/* Print the results of report_make as text or JSON, or as a summary. */
void report_print_text(const struct report *r, const struct report_view *v, FILE *out);
void report_print_json(const struct report *r, const struct report_view *v, FILE *out);
void report_print_summary(const struct report *r, FILE *out);

/* Writes the tables as csv, see tables_write_csv. */
enum exit_code report_write_csv(const struct report *r, const struct report_view *v,
                                const char *path, uint64_t *room);

/* ---- tables of a struct report ---- */

/* A row for each host and how its clock was aligned (host_clocks.h); losses and notes of the
 * recording; and the dumps of flight recorders (run --flight). JSON has losses in a form of its
 * own, so that table has no key; the text ends with it. (recording_tables.c, report_print.c)
 */
extern const struct table_info clocks_table, losses_table, dumps_table;

/* Says why a dump was written: "a step was slow: step 57 took 81.2 ms, 4.1 x the median". The
 * caller frees it. */
char *dump_line(const struct process_dump *d);

/* Returns the last dump of all processes and sets *count to their number; NULL: there are none. */
const struct process_dump *dumps_last(const struct recording *rec, uint64_t *count);

/* ---- the first screen (overview.c) ----
 *
 * It is also the summary at the end of a run. It says whether the device works, if not why not, and
 * what to try first. All figures come from the tables and from idle.h, findings.h and steps.h; only
 * the median of the steps is computed here.
 */

#define OVERVIEW_LINES_MAX 24 /* of the first screen */

struct overview {
    const struct report *report;
    const char *program;  /* command line of the first process as recorded; NULL: not known */
    uint32_t ranks;       /* in all jobs; several processes may share a rank, or have none */
    uint32_t devices;     /* that did work; each counts once if its UUID is known */
    uint32_t workless;    /* processes that launched work but have no record of it */
    const char *device;   /* name of the first device; NULL: not known */
    uint64_t windows;     /* highest number of windows in a process; 0: everything was recorded */
    const char *schedule; /* the schedule of the first process that followed one, or NULL */
    const struct steps *marks;
    uint32_t steps; /* complete steps of all processes */
    uint64_t step_median_ns;
    const struct step *slowest; /* NULL: there are no steps */
};

/* Fills *o with views of `r`. */
void overview_init(struct overview *o, const struct report *r);

/* Returns whether missing ranks of a job are reported. If it is not sure that they are missing,
 * only for a job that communicates. */
bool overview_has_missing(const struct report *r, const struct missing_ranks *m);

/* Returns "ranks 2, 5-7 of 8 have no file" and the consequence, in new memory; NULL: no rank is
 * missing. (overview_print.c, as the next two) */
char *overview_missing_text(const struct report *r);

/* Says what ended the start-up. */
const char *overview_start_up_end(const struct overview *o);

/* Returns how many of losses.gpu_missing belong to processes that hang: CUPTI has their records and
 * does not deliver them. */
uint64_t overview_held_back(const struct report *r);

/* Returns the wall time before the first GPU work or, if there is none, before the first call, as
 * far as it was recorded. 0 for a selection of time. */
uint64_t overview_start_up_ns(const struct report *r);

/* The device that worked first; NULL: none. */
const struct idle_device *overview_first_device(const struct report *r);

/* The overhead of the busiest thread as a share of its process's steps, for the process with the
 * largest. It is an upper bound: overhead outside steps counts. 0: no steps, they fill its life, or
 * there is a selection. */
double overview_cost_of_steps(const struct report *r);

/* Print the first screen, OVERVIEW_LINES_MAX lines of how->width columns at most (0: of any width);
 * and above tables that were asked for only what was recorded, and why GPU rows are missing. */
void overview_print(const struct overview *o, const struct table_view *how, FILE *out);
void overview_print_head(const struct overview *o, const struct table_view *how, FILE *out);

/* Lines of the screens above: what the devices did, and why GPU rows are missing in some or all
 * processes. */
void overview_print_devices(const struct overview *o, struct screen *s);
void overview_print_missing_reason(const struct report *r, struct screen *s);

static inline double overview_percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

/* Prints the member "overview", without a comma around it. (overview_json.c) */
void overview_print_json(const struct overview *o, FILE *out);

/* ---- which tables a report shows (report_print.c) ---- */

#define REPORT_TABLES_MAX 64
#define REPORT_ROWS       10 /* rows of a table in text, by default */

/* Fills `tables` (REPORT_TABLES_MAX items) in the order of JSON and csv; returns the number. Tables
 * of one name are neighbours. */
unsigned report_tables(const struct report *r, struct table *tables);

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

/* Returns whether a report of this format has the table. */
bool report_wants(const struct report_view *v, const struct table_info *info,
                  enum report_format format);

/* Returns EXIT_OK, or EXIT_USAGE after one line about an unknown table, or a column that all shown
 * tables lack. */
enum exit_code report_view_check(const struct report_view *v);

#endif
