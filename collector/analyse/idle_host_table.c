/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what the feeding thread did while the GPU was idle: rows of idle_host.c, merged by
 * cause, kind and place. */
#include <stdlib.h>

#include "analyse/idle.h"
#include "analyse/report_make.h"
#include "error.h"

enum { CAUSE, DID, PLACE };
enum { GAPS, TOTAL, LONGEST, AT };

static int idle_host_table_add(struct sums *s, struct idle *d, const struct idle_row *row)
{
    char *place = idle_place_text(d->walk, &d->lines, row);
    uint64_t values[SUMS_VALUES] = {row->count, row->ns, row->longest_ns, row->longest_at_ns};
    int error =
        place ? sums_row_add(s,
                             (struct key){sums_text(s, idle_cause_words[row->cause]),
                                          sums_text(s, did_words[row->did]), sums_text(s, place)},
                             values)
              : GPUPROF_NO_MEMORY;
    free(place);
    return error;
}

/* Runs after the places of idle time are named, as the findings need them. */
static int idle_host_table_end(struct report *r)
{
    struct sums *s = &r->sums[ANALYSIS_idle_host_sums];
    struct idle *d = r->idle;
    int error = d && r->request.use == USE_EXPORT ? idle_name(d, r->request.symbols) : 0;
    if (!d || !s->info)
        return error;
    s->owner = d;
    s->begin_ns = d->walk->survey.origin_ns;
    for (uint32_t i = 0; error == 0 && i < d->rows.count; i++)
        if (d->rows.list[i].did && d->rows.list[i].ns)
            error = idle_host_table_add(s, d, &d->rows.list[i]);
    return error == 0 ? sums_finish(s) : error;
}

const struct analysis idle_host_analysis = {
    .uses = USE_EXPORT, .parts = REPORT_IDLE, .end = idle_host_table_end};

static const struct column columns[] = {
    {"place", "where", .shows = SHOWS_KEY, .of = PLACE,
     .doc = "the line, after the file, the call, or the holder of the lock"},
    {"cause", "cause", COLUMN_TEXT, 13, .shows = SHOWS_KEY, .of = CAUSE,
     .doc = "the cause of the idle time, as in the table idle"},
    {"did", "did", COLUMN_TEXT, 13, .shows = SHOWS_KEY, .of = DID,
     .doc = "what the thread did meanwhile, or what it waited for"},
    {"count", "gaps", COLUMN_COUNT, 9, .shows = SHOWS_VALUE, .of = GAPS,
     .doc = "the number of gaps; if samples are the source, of gaps with a sample"},
    {"total_ns", "total", COLUMN_NS, 12, .shows = SHOWS_VALUE, .of = TOTAL,
     .doc = "idle time of the GPUs meanwhile"},
    {"share", "share", COLUMN_SHARE, 7, .shows = SHOWS_SHARE, .of = TOTAL,
     .doc = "idle time as a share of all rows"},
    {"longest_ns", "longest", COLUMN_NS, 12, .spare = 1, .shows = SHOWS_VALUE, .of = LONGEST,
     .doc = "the longest part of one gap"},
    {"at_ns", "began at", COLUMN_NS, 12, .spare = 2, .shows = SHOWS_MOMENT, .of = AT,
     .doc = "when that part began"},
};

const struct sums_info idle_host_sums = {
    .keys = {KEY_TEXT, KEY_TEXT, KEY_TEXT},
    .values = {JOIN_ADD, JOIN_ADD, JOIN_MOST, JOIN_WITH},
    .rows_max = SUMS_ROWS_MAX,
    .order = TOTAL,
    .is_left_out = true,
    .parts = REPORT_IDLE,
    .table = {SUMS_TABLE, .name = "idle_host", .key = "idle_host",
              .title = "host activity while the GPUs waited", .columns = columns,
              .column_count = sizeof columns / sizeof columns[0], .text = {1, 2, 4, 5, 3, 6},
              .text_none = ": not recorded (gpuprof run --sample --os PROGRAM)"},
};
