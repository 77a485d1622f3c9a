/* SPDX-License-Identifier: Apache-2.0 */
/* Calls by function. A nested call's time is in the share of the call around it, so that shares add
 * up to the whole. Functions with only nested calls have no share. */
#include "analyse/analyses.h"

enum { FUNCTION, DOMAIN };
enum { CALLS, ERRORS, TOTAL, OUTER, MAX, BYTES, RECORDED };

static int functions_take(void *context, const struct rows *rows)
{
    struct sums *sums = context;
    const struct function *const *functions =
        (const struct function *const *)sums->rec->reader.functions.functions;
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct function *f = functions[rows->columns[ROW_FUNCTION][i]];
        uint64_t key = sums_function(sums, f);
        struct sums_row *row = sums_row(sums, key, f->domain, 0);
        uint64_t ns = rows->columns[ROW_NS][i], weight = rows->columns[ROW_WEIGHT][i];
        uint64_t flags = rows->columns[ROW_FLAGS][i];
        row->values[CALLS] += weight;
        row->values[RECORDED]++;
        row->values[TOTAL] += ns * weight;
        row->values[OUTER] += flags & ROW_NESTED ? 0 : ns * weight;
        row->values[MAX] = ns > row->values[MAX] ? ns : row->values[MAX];
        row->values[ERRORS] += flags & ROW_FAILED ? weight : 0;
        row->values[BYTES] += rows->columns[ROW_BYTES][i] * weight;
        sums_took(sums, row, ns, weight);
    }
    return 0;
}

static void functions_print_notes(const struct table *t, FILE *out)
{
    const struct sums *s = t->source;
    fprintf(out, "\nmedian and p95 are within 1%%; share refers to the time in calls; nested calls "
                 "count in the outer call, too\n");
    if (s->whole[RECORDED] < s->whole[CALLS])
        fprintf(out, "~: estimated, because --overhead-max recorded only some of these calls\n");
}

static const struct column columns[] = {
    {"function", "function", SHOW(KEY, FUNCTION), .doc = "the function that was called"},
    {"domain", SHOW(KEY, DOMAIN), .doc = "the library that it belongs to"},
    {"calls", "calls", COLUMN_COUNT, 12, .spare = 2, SHOW(VALUE, CALLS), .is_estimated = true,
     .doc = "how many calls there were"},
    {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, TOTAL), .is_estimated = true,
     .doc = "how long they took, including nested calls"},
    {"mean_ns", "mean", COLUMN_NS, 12, .spare = 1, SHOW(MEAN, TOTAL),
     .doc = "how long a call took on average"},
    {"median_ns", "median", COLUMN_NS, 12, .spare = 1, SHOW(MEDIAN, MAX),
     .doc = "median time of a call"},
    {"p95_ns", "p95", COLUMN_NS, 12, .spare = 1, SHOW(P95, MAX),
     .doc = "95th percentile of the time of a call"},
    {"max_ns", "max", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, MAX),
     .doc = "the time of the longest call"},
    {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 1, SHOW(VALUE, BYTES), .where = BYTES,
     .doc = "bytes that successful calls copied, set or allocated"},
    {"errors", "errors", COLUMN_COUNT, 9, .spare = 2, SHOW(VALUE, ERRORS), .where = ERRORS,
     .doc = "calls that returned an error"},
    {"estimated_from", NULL, COLUMN_COUNT, SHOW(RECORDED, RECORDED),
     .doc = "how many calls were recorded, if the other numbers are estimates based on them"},
    {NULL, "share", COLUMN_SHARE, 7, SHOW(SHARE, OUTER), .by = TOTAL,
     .doc = "total as a share of the time in all calls that are not nested"},
};

const struct sums_info functions_sums = {
    .keys = {KEY_TEXT, KEY_DOMAIN},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_ADD, JOIN_ADD},
    .has_durations = true,
    .order = TOTAL,
    .recorded = RECORDED,
    .parts = REPORT_CALLS,
    .rows = {.tables = 1u << ROWS_CALLS, .take = functions_take},
    .table = {SUMS_TABLE, .name = "functions", .key = "functions", .title = "calls",
              TABLE_COLUMNS(columns),
              .text = {11, 3, 2, 4, 5, 6, 7, 8, 9}, /* share, total, calls, mean ... errors */
              .place = PLACE_FUNCTIONS, .text_behind = functions_print_notes},
};
