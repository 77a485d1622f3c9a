/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/failures.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/api_error.h"
#include "read/process.h"
#include "read/process_title.h"

const char *failure_name(const struct failure *row, char text[static FAILURE_TEXT_BYTES])
{
    const char *name = api_error_name(row->function->domain, row->result);
    if (name)
        snprintf(text, FAILURE_TEXT_BYTES, "%s", name);
    else
        snprintf(text, FAILURE_TEXT_BYTES, "error %d", row->result);
    return text;
}

bool failures_are_one(const struct failure *a, const struct failure *b)
{
    return a->result == b->result && a->function->domain == b->function->domain &&
           strcmp(a->function->name, b->function->name) == 0;
}

static void add(struct failures *f, const struct failure *new)
{
    uint32_t i = 0;
    while (i < f->count && !failures_are_one(&f->rows[i], new))
        i++;
    if (i == FAILURES_MAX)
        f->others += new->count;
    else if (i == f->count)
        f->rows[f->count++] = *new;
    else
        f->rows[i].count += new->count;
}

void failures_take(struct failures *f, const struct event *e, uint64_t weight)
{
    add(f, &(struct failure){.function = e->function,
                             .process = e->process,
                             .thread = e->thread,
                             .result = e->record->result,
                             .count = weight,
                             .first_ns = e->end_ns,
                             .begin_ns = e->begin_ns});
}

void failures_take_library(struct failures *f, const struct slice *s)
{
    const struct library_call *l = s->library;
    if (s->library_change != LIBRARY_CLOSED || s->is_hidden ||
        !api_has_failed(l->function->domain, l->result))
        return;
    add(f, &(struct failure){.function = l->function,
                             .process = l->process,
                             .thread = l->thread,
                             .result = l->result,
                             .count = 1,
                             .first_ns = l->end_ns,
                             .begin_ns = l->begin_ns});
}

uint64_t failures_count(const struct failures *f)
{
    uint64_t count = f->others;
    for (uint32_t i = 0; i < f->count; i++)
        count += f->rows[i].count;
    return count;
}

enum { NAME, FUNCTION, DOMAIN, RESULT, ERROR, COUNT, FIRST, HOST, PID, TID, COLUMNS };

static const struct column columns[COLUMNS] = {
    [NAME] = {NULL, "error and function, where it came first"},
    [FUNCTION] = {"function"},
    [DOMAIN] = {"domain"},
    [RESULT] = {"result", .type = COLUMN_NUMBER, .ascending = true},
    [ERROR] = {"error"},
    [COUNT] = {"count", "count", COLUMN_COUNT, 13},
    [FIRST] = {"first_ns", "first after", COLUMN_NS, 12, .ascending = true, .spare = 2},
    [HOST] = {"host"},
    [PID] = {"pid", .type = COLUMN_NUMBER, .ascending = true},
    [TID] = {"tid", .type = COLUMN_NUMBER, .ascending = true},
};

static void table_begins(struct table *t, enum report_format format)
{
    t->count = ((const struct failures *)t->source)->count;
    t->is_there = t->count || format == FORMAT_JSON;
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct failures *f = t->source;
    const struct failure *row = &f->rows[index];
    char title[1200], error[FAILURE_TEXT_BYTES], *text = NULL;
    int length;
    failure_name(row, error);
    if (format == FORMAT_TEXT)
        length = asprintf(&text, "%s of %s, in %s", error, row->function->name,
                          thread_title(row->process, row->thread, title, sizeof title));
    else
        length = asprintf(&text, "%s of %.400s", error, row->function->name);
    cells[NAME] = cell_owned(length < 0 ? NULL : text);
    cells[FUNCTION] = cell_text(row->function->name);
    cells[DOMAIN] = cell_text(api_domain_name(row->function->domain));
    cells[RESULT] = cell_number((uint64_t)row->result);
    cells[ERROR] = cell_owned(strdup(error));
    cells[COUNT] = cell_number(row->count);
    cells[FIRST] = cell_number(row->first_ns > f->begin_ns ? row->first_ns - f->begin_ns : 0);
    cells[HOST] = cell_text(row->process->header.host);
    cells[PID] = cell_number(row->process->header.pid);
    cells[TID] = cell_number(row->thread->tid);
}

static bool fill_foot(const struct table *t, struct cell *cells)
{
    uint64_t others = ((const struct failures *)t->source)->others;
    cells[NAME] = cell_text("others");
    cells[COUNT] = cell_number(others);
    return others;
}

const struct table_info failures_table = {
    .name = "failures",
    .key = "failures",
    .title = "calls that returned an error",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {COUNT, FIRST},
    /* They are among their functions' errors already, so that here they are not to be added up. */
    .place = PLACE_URGENT,
    .json_empty = "[]",
    .begin = table_begins,
    .row = fill_row,
    .foot = fill_foot,
};
