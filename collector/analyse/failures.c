/* SPDX-License-Identifier: Apache-2.0 */
/* The errors that calls returned: which, how often, and where each came first. The first is the
 * cause: an error of a device stays, and every later call returns it, too. Rows are in the order of
 * their first time. */
#include "analyse/analyses.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/api_error.h"
#include "base/memory.h"
#include "read/process.h"

enum { FUNCTION, DOMAIN, RESULT };
/* FIRST is when the walk reports it. */
enum { COUNT, FIRST, PROCESS, THREAD, TITLE, ENDED };

const char *failure_name(const struct sums_row *row, char text[static FAILURE_TEXT_BYTES])
{
    int32_t result = (int32_t)row->keys[RESULT];
    const char *name = api_error_name((uint8_t)row->keys[DOMAIN], result);
    if (name)
        snprintf(text, FAILURE_TEXT_BYTES, "%s", name);
    else
        snprintf(text, FAILURE_TEXT_BYTES, "error %d", result);
    return text;
}

static int failures_take(struct sums *s, const struct function *f, int32_t result, uint64_t weight,
                         const struct process *p, const struct thread *thread, uint64_t first_ns,
                         uint64_t ended_ns)
{
    char title[1200];
    struct sums_row *row = sums_row(s, sums_function(s, f), f->domain, (uint64_t)result);
    if (!row->values[COUNT] || first_ns < row->values[FIRST]) {
        row->values[FIRST] = first_ns;
        row->values[PROCESS] = p->index;
        row->values[THREAD] = thread->tid;
        row->values[TITLE] = sums_text(s, thread_title(p, thread, title, sizeof title));
        row->values[ENDED] = ended_ns;
    }
    row->values[COUNT] += weight;
    return 0;
}

static int failures_take_library(void *context, const struct slice *slice)
{
    const struct host_span *l = slice->span;
    if (slice_change(slice, SPAN_LIBRARY) != SPAN_CLOSED || slice->is_filtered ||
        !api_has_failed(l->function->domain, l->result))
        return 0;
    return failures_take(context, l->function, l->result, 1, l->process, l->thread, l->end_ns,
                         l->end_ns);
}

static int failures_take_call(void *context, const struct slice *s)
{
    struct sums *sums = context;
    const struct event *e = &s->event;
    if (!sums->begin_ns || e->begin_ns < sums->begin_ns)
        sums->begin_ns = e->begin_ns;
    if (!api_has_failed(e->function->domain, e->record->result))
        return 0;
    return failures_take(sums, e->function, e->record->result,
                         e->record->weight > 1 ? e->record->weight : 1, e->process, e->thread,
                         e->begin_ns, e->end_ns);
}

/* A report sets when time begins from its parts; an export has only the calls that were taken. */
static void failures_complete(struct sums *s)
{
    s->begin_ns = s->begin_ns ? s->begin_ns : s->walk->survey.origin_ns;
}

enum { NAME, ERROR = 4 };

static void failures_fill(const struct table *t, const struct sums_row *row, struct cell *cells)
{
    if (sums_is_others(row)) {
        cells[NAME] = cell_text("others");
        return;
    }
    const char *name = sums_shown(row->keys[FUNCTION]), *title = sums_shown(row->values[TITLE]);
    char error[FAILURE_TEXT_BYTES];
    cells[NAME] = cell_printf(t->format == FORMAT_TEXT ? "%s of %s, in %s" : "%s of %.400s",
                              failure_name(row, error), name ? name : "?", title ? title : "?");
    cells[ERROR] = cell_owned(memory_text(error));
}

static const struct column columns[] = {
    {NULL, "error and function, where it came first",
     .doc = "the error, the function, and the thread that got the error first"},
    {"function", SHOW(KEY, FUNCTION), .doc = "the function that returned it"},
    {"domain", SHOW(KEY, DOMAIN), .doc = "the library that it belongs to"},
    {"result", .type = COLUMN_NUMBER, .ascending = true, SHOW(KEY, RESULT),
     .doc = "the number of the error"},
    {"error", .doc = "the name of the error, or its number if it has no name"},
    {"count", "count", COLUMN_COUNT, 13, SHOW(VALUE, COUNT), .doc = "how many calls returned it"},
    {"first_ns", "first after", COLUMN_NS, 12, .ascending = true, .spare = 2, SHOW(MOMENT, ENDED),
     .doc = "when the first call that failed returned"},
    {"host", SHOW(HOST, SUMS_OF_VALUE(PROCESS)), .doc = "the host of that call"},
    {"pid", .type = COLUMN_NUMBER, .ascending = true, SHOW(PID, SUMS_OF_VALUE(PROCESS)),
     .doc = "the process of that call"},
    {"tid", .type = COLUMN_NUMBER, .ascending = true, SHOW(VALUE, THREAD),
     .doc = "the thread of that call"},
};

const struct sums_info failures_sums = {
    .keys = {KEY_TEXT, KEY_DOMAIN, KEY_NUMBER},
    .values = {[COUNT] = JOIN_ADD, [FIRST] = JOIN_LEAST, [PROCESS... ENDED] = JOIN_WITH},
    .is = {[PROCESS] = KEY_PROCESS, [TITLE] = KEY_TEXT},
    .rows_max = FAILURES_MAX,
    .order = FIRST,
    .parts = REPORT_CALLS,
    .complete = failures_complete,
    .fill = failures_fill,
    .consumer = {.needs = WALK_SPANS,
                 .skips = WALK_SKIPS_WORK,
                 .take = failures_take_library,
                 .take_call = failures_take_call},
    /* Their functions already count these errors: do not add them up here. */
    .table = {SUMS_TABLE, .name = "failures", .key = "failures",
              .title = "calls that returned an error", TABLE_COLUMNS(columns),
              .text = {5, 6}, /* count, first */
              .place = PLACE_URGENT},
};
