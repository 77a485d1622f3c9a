/* SPDX-License-Identifier: Apache-2.0 */
/* The report's table of functions. */
#include "api/api.h"
#include "report/report.h"

static uint64_t mean_ns(const struct report_row *row)
{
    return row->count ? row->total_ns / row->count : 0;
}

static uint64_t quantile_ns(const struct report_row *row, double fraction)
{
    return histogram_quantile(&row->durations, fraction, 0, row->max_ns);
}

enum { NAME, DOMAIN, CALLS, TOTAL, MEAN, MEDIAN, P95, MAX, BYTES, ERRORS, FROM, SHARE, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {"function", "function"},
    [DOMAIN] = {"domain"},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12, .spare = 2},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12},
    [MEAN] = {"mean_ns", "mean", COLUMN_NS, 12, .spare = 1},
    [MEDIAN] = {"median_ns", "median", COLUMN_NS, 12, .spare = 1},
    [P95] = {"p95_ns", "p95", COLUMN_NS, 12, .spare = 1},
    [MAX] = {"max_ns", "max", COLUMN_NS, 12, .spare = 1},
    [BYTES] = {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 1},
    [ERRORS] = {"errors", "errors", COLUMN_COUNT, 9, .spare = 2},
    [FROM] = {"estimated_from", NULL, COLUMN_COUNT},
    [SHARE] = {NULL, "share", COLUMN_SHARE, 7},
};

static void table_begins(struct table *t, enum report_format format)
{
    t->count = ((const struct report *)t->source)->row_count;
    t->is_there = t->count || format != FORMAT_TEXT;
}

static struct cell or_nothing(uint64_t number, enum report_format format)
{
    return number || format != FORMAT_TEXT ? cell_number(number) : (struct cell){0};
}

struct cell report_share(const struct report *r, const struct report_row *row)
{
    if (row->total_ns && !row->outer_ns)
        return (struct cell){0};
    return cell_share(row->outer_ns, r->total_ns);
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct report *r = t->source;
    const struct report_row *row = &r->rows[index];
    bool is_estimated = row->count > row->recorded;
    cells[NAME] = cell_text(row->function->name);
    cells[DOMAIN] = cell_text(api_domain_name(row->function->domain));
    cells[CALLS] = cell_number(row->count);
    cells[TOTAL] = cell_number(row->total_ns);
    cells[CALLS].estimated = cells[TOTAL].estimated = is_estimated;
    cells[MEAN] = cell_number(mean_ns(row));
    cells[MEDIAN] = cell_number(quantile_ns(row, 0.5));
    cells[P95] = cell_number(quantile_ns(row, 0.95));
    cells[MAX] = cell_number(row->max_ns);
    cells[BYTES] = or_nothing(row->bytes, format);
    cells[ERRORS] = or_nothing(row->errors, format);
    if (is_estimated)
        cells[FROM] = cell_number(row->recorded);
    cells[SHARE] = report_share(r, row);
}

static void print_notes(const struct table *t, FILE *out)
{
    const struct report *r = t->source;
    bool nested = false;
    for (uint32_t i = 0; i < r->row_count; i++)
        nested |= r->rows[i].outer_ns < r->rows[i].total_ns;
    fprintf(out, "\nmedian and p95 are within 1 %%; share is of the time in calls%s\n",
            nested ? ", and a call's inside another is in that one's" : "");
    if (r->is_estimated)
        fprintf(out, "~: estimated; since a step of --overhead-max only some of these calls are "
                     "recorded\n");
}

const struct table_info functions_table = {
    .name = "functions",
    .place = PLACE_FUNCTIONS,
    .key = "functions",
    .title = "calls",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {SHARE, TOTAL, CALLS, MEAN, MEDIAN, P95, MAX, BYTES, ERRORS},
    .csv = {{CSV_FUNCTION, NULL, DOMAIN, 0, {CALLS, TOTAL, MEAN, MEDIAN, P95, MAX, BYTES, ERRORS}}},
    .csv_count = 1,
    .begin = table_begins,
    .row = fill_row,
    .text_behind = print_notes,
};
