/* SPDX-License-Identifier: Apache-2.0 */
/* Python's garbage collections, by generation. */
#include <stdio.h>

#include "analyse/analyses.h"
#include "read/process.h"
#include "resolve/host_facts.h"

enum { PROCESS, GENERATION };
enum { COLLECTIONS, TOTAL, MAX, COLLECTED, UNCOLLECTABLE };

static int gc_take(void *context, const struct slice *s)
{
    const struct event *e = &s->event;
    if (e->record->type != RECORD_GC)
        return 0;
    uint64_t ns = e->end_ns - e->begin_ns;
    const uint64_t values[] = {1, ns, ns, record_arg(e->record, GC_COLLECTED),
                               record_arg(e->record, GC_UNCOLLECTABLE)};
    sums_row_add(context, (struct key){e->process->index, e->record->code, 0}, values);
    return 0;
}

static const char *gc_name(const struct sums *s, const struct sums_row *row, char *text)
{
    char who[RANK_TITLE_BYTES] = "";
    if (s->rec->count > 1)
        process_who(s->rec->processes[row->keys[PROCESS]], who);
    snprintf(text, SUMS_NAME_BYTES, "generation %llu%s%s",
             (unsigned long long)row->keys[GENERATION], *who ? " of " : "", who);
    return text;
}

static const struct column columns[] = {
    {NULL, "generation", SHOW(KEY, PROCESS), .doc = "the generation"},
    {"host", SHOW(HOST, PROCESS), .doc = "the host"},
    {"pid", NULL, COLUMN_NUMBER, .ascending = true, SHOW(PID, PROCESS), .doc = "the process"},
    {"generation", NULL, COLUMN_NUMBER, .ascending = true, SHOW(KEY, GENERATION),
     .doc = "the generation: 0 has young objects, the highest has all objects"},
    {"collections", "collections", COLUMN_COUNT, 11, SHOW(VALUE, COLLECTIONS),
     .doc = "the number of collections"},
    {"total_ns", "total", COLUMN_NS, 12, SHOW(VALUE, TOTAL),
     .doc = "total time; Python's threads stand still meanwhile"},
    {"mean_ns", "mean", COLUMN_NS, 12, .spare = 1, SHOW(MEAN, TOTAL),
     .doc = "mean time of a collection"},
    {"max_ns", "longest", COLUMN_NS, 12, SHOW(VALUE, MAX),
     .doc = "the time of the longest collection"},
    {"collected", "collected", COLUMN_COUNT, 12, .spare = 2, SHOW(VALUE, COLLECTED),
     .doc = "objects that the collections freed"},
    {"uncollectable", "uncollectable", COLUMN_COUNT, 13, .spare = 2, .is_filled = true,
     SHOW(VALUE, UNCOLLECTABLE), .where = UNCOLLECTABLE,
     .doc = "objects that the collections could not free"},
};

const struct sums_info gc_sums = {
    .keys = {KEY_PROCESS, KEY_NUMBER},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_ADD, JOIN_ADD},
    .rows_max = SUMS_ROWS_MAX,
    .order = TOTAL,
    .then = {COLLECTIONS},
    .is_left_out = true,
    .parts = REPORT_HOST,
    .name = gc_name,
    .consumer = {.skips = WALK_SKIPS_CALLS | WALK_SKIPS_WORK, .take = gc_take},
    .table = {SUMS_TABLE, .name = "gc", .key = "gc", .title = "Python's garbage collections",
              TABLE_COLUMNS(columns),
              .text = {5, 4, 6, 7, 8, 9}, /* total, collections, mean, longest, objects */
              .text_limit = 40,
              .text_none = ": no garbage collection is recorded (gpuprof run --sample)"},
};
