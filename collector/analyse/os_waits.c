/* SPDX-License-Identifier: Apache-2.0 */
/* System calls that waited, by function and by file or peer. */
#include <stdio.h>

#include "analyse/analyses.h"
#include "resolve/host_facts.h"

enum { FUNCTION, PEER };
enum { CALLS, TOTAL, MAX, BYTES, FAILED, CLASS };

static int os_waits_take(void *context, const struct slice *s)
{
    struct sums *sums = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    char text[OS_TEXT_BYTES];
    const struct kernel_name *peer = NULL;
    if (r->type != RECORD_OS_CALL)
        return 0;
    if (r->byte_count)
        peer = kernel_name_intern(&sums->texts, r->bytes, r->byte_count);
    uint64_t function = sums_text(sums, host_os_name(e, text));
    struct sums_row *row = sums_row(sums, function, sums_name_key(peer), 0);
    uint64_t ns = e->end_ns - e->begin_ns, weight = r->weight > 1 ? r->weight : 1;
    row->values[CALLS] += weight;
    row->values[TOTAL] += ns * weight;
    row->values[MAX] = ns > row->values[MAX] ? ns : row->values[MAX];
    row->values[BYTES] += record_arg(r, OS_CALL_BYTES) * weight;
    row->values[FAILED] += record_arg(r, OS_CALL_ERROR) ? weight : 0;
    if (!row->values[CLASS] && !sums_is_others(row))
        row->values[CLASS] = sums_text(sums, os_class_text(host_os_class(e)));
    sums_took(sums, row, ns, weight);
    return 0;
}

/* "read /data/train.bin" */
static const char *os_waits_name(const struct sums *s, const struct sums_row *row, char *text)
{
    const char *function = sums_shown(row->keys[FUNCTION]), *peer = sums_shown(row->keys[PEER]);
    (void)s;
    snprintf(text, SUMS_NAME_BYTES, "%.*s%s%.*s", OS_NAME_BYTES_MAX, function ? function : "?",
             peer ? " " : "", RECORD_BYTES_MAX, peer ? peer : "");
    return text;
}

static const struct column columns[] = {
    {NULL, "function, and the file or peer", SHOW(KEY, FUNCTION),
     .doc = "the system function, and the file or peer of its descriptor"},
    {"function", SHOW(TEXT, FUNCTION), .doc = "the system function"},
    {"peer", SHOW(KEY, PEER), .doc = "the file or peer of the descriptor; null: it has none"},
    {"class", "class", COLUMN_TEXT, 9, .spare = 2, SHOW(KEY, SUMS_OF_VALUE(CLASS)), .only = CLASS,
     .doc = "what it waits for"},
    {"calls", "calls", COLUMN_COUNT, 9, .spare = 2, SHOW(VALUE, CALLS),
     .doc = "the number of calls"},
    {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, TOTAL), .doc = "total time in the calls"},
    {NULL, "share", COLUMN_SHARE, 7, SHOW(SHARE, TOTAL), .doc = "total as a share of all rows"},
    {"mean_ns", "mean", COLUMN_NS, 12, .spare = 1, SHOW(MEAN, TOTAL), .doc = "mean time of a call"},
    {"median_ns", "median", COLUMN_NS, 12, .spare = 1, SHOW(MEDIAN, MAX),
     .doc = "median time of a call"},
    {"max_ns", "max", COLUMN_NS, 12, .spare = 1, SHOW(VALUE, MAX),
     .doc = "the time of the longest call"},
    {"bytes", "bytes", COLUMN_BYTES, 11, .spare = 1, .is_filled = true, SHOW(VALUE, BYTES),
     .where = BYTES, .doc = "bytes that the calls moved"},
    {"failed", "failed", COLUMN_COUNT, 9, .spare = 2, .is_filled = true, SHOW(VALUE, FAILED),
     .where = FAILED, .doc = "calls that returned an error, such as a timeout"},
};

const struct sums_info os_sums = {
    .keys = {KEY_TEXT, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_ADD, JOIN_ADD, JOIN_MOST},
    .is = {[CLASS] = KEY_TEXT},
    .rows_max = SUMS_ROWS_MAX,
    .has_durations = true,
    .order = TOTAL,
    .is_left_out = true,
    .parts = REPORT_HOST,
    .name = os_waits_name,
    .consumer = {.skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK, .take = os_waits_take},
    .table = {SUMS_TABLE, .name = "os", .key = "os", .title = "system calls that waited",
              TABLE_COLUMNS(columns),
              .text = {6, 5, 4, 7, 8, 9, 10, 11, 3}, /* share, total, calls, mean ... class */
              .text_limit = 40, .text_none = ": no system call is recorded (gpuprof run --os)"},
};
