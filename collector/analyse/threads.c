/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of each thread, and the device work that they launched (--by=thread). */
#include "analyse/analyses.h"

enum { THREAD };
enum { CALLS, RECORDED, ERRORS, TOTAL, MAX, WORK, GPU };

static int threads_take(void *context, const struct rows *rows)
{
    bool has_calls = rows->table == ROWS_CALLS;
    for (uint32_t i = 0; i < rows->count; i++) {
        uint64_t flags = rows->columns[ROW_FLAGS][i], ns = rows->columns[ROW_NS][i];
        uint64_t weight = rows->columns[ROW_WEIGHT][i];
        if (!has_calls && !(flags & ROW_CALLED))
            continue;
        uint64_t *values = sums_row(context, rows->columns[ROW_THREAD][i], 0, 0)->values;
        if (!has_calls) {
            values[WORK]++;
            values[GPU] += ns;
            continue;
        }
        values[CALLS] += weight;
        values[RECORDED]++;
        values[ERRORS] += flags & ROW_FAILED ? weight : 0;
        values[MAX] = max_of(values[MAX], ns);
        values[TOTAL] += flags & ROW_NESTED ? 0 : ns * weight;
    }
    return 0;
}

static const struct column columns[] = {
    {NULL, "thread and process", SHOW(KEY, THREAD), .doc = "the thread, with its process"},
    {"host", SHOW(HOST, THREAD), .doc = "the host that it ran on"},
    {"pid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(PID, THREAD), .doc = "its process"},
    {"tid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(TID, THREAD),
     .doc = "the number of the thread"},
    {"thread", SHOW(THREAD, THREAD), .doc = "the name of the thread"},
    {"calls", "calls", COLUMN_COUNT, 12, SHOW(VALUE, CALLS), .is_estimated = true,
     .doc = "the number of calls"},
    {"estimated_from", NULL, COLUMN_COUNT, SHOW(RECORDED, RECORDED),
     .doc = "how many calls were recorded, if the other numbers are estimates based on them"},
    {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, TOTAL), .is_estimated = true,
     .doc = "total time in its calls, without nested calls"},
    {NULL, "share", COLUMN_SHARE, 7, SHOW(SHARE, TOTAL), .doc = "total as a share of all threads"},
    {"max_ns", "max", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, MAX),
     .doc = "the time of its longest call"},
    {"errors", "errors", COLUMN_COUNT, 9, .spare = 2, SHOW(VALUE, ERRORS), .where = ERRORS,
     .doc = "calls that returned an error"},
    {"gpu_work", "GPU work", COLUMN_COUNT, 12, .spare = 2, SHOW(VALUE, WORK), .where = WORK,
     .doc = "kernels, copies and sets that its calls launched"},
    {"gpu_ns", "GPU time", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, GPU), .where = WORK,
     .doc = "GPU time of that work"},
};

const struct sums_info threads_sums = {
    .keys = {KEY_THREAD},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_ADD, JOIN_ADD},
    .order = TOTAL,
    .recorded = RECORDED,
    .rows = {.tables = 1u << ROWS_CALLS | 1u << ROWS_WORK, .ties = true, .take = threads_take},
    .table = {SUMS_TABLE, .name = "calls_by_thread", .key = "calls_by_thread",
              .title = "calls by thread, and the GPU work that they launched",
              TABLE_COLUMNS(columns),
              .text = {8, 7, 5, 9, 10, 12, 11}, /* share, total, calls, max, errors, GPU */
              .by = BY_THREAD, .text_limit = 40},
};
