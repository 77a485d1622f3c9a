/* SPDX-License-Identifier: Apache-2.0 */
#include "report/thread_report.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "error.h"
#include "read/process_title.h"
#include "record/gpu_record.h"

int thread_report_init(struct thread_report *r, const struct recording *rec)
{
    *r = (struct thread_report){.count = rec->thread_count};
    r->rows = calloc(rec->thread_count + 1u, sizeof *r->rows);
    return r->rows ? 0 : GPUPROF_NO_MEMORY;
}

void thread_report_release(struct thread_report *r)
{
    free(r->rows);
}

static int take(void *context, const struct slice *s)
{
    struct thread_report *r = context;
    const struct event *e = &s->event;
    if (e->record->type != RECORD_CALL)
        return 0;
    struct thread_row *row = &r->rows[e->thread->index];
    uint64_t weight = e->record->weight > 1 ? e->record->weight : 1;
    uint64_t ns = e->end_ns - e->begin_ns;
    row->process = e->process;
    row->thread = e->thread;
    row->calls += weight;
    row->recorded++;
    row->errors += api_has_failed(e->function->domain, e->record->result) ? weight : 0;
    if (ns > row->max_ns)
        row->max_ns = ns;
    if (!(e->record->flags & RECORD_NESTED)) {
        row->total_ns += ns * weight;
        r->total_ns += ns * weight;
    }
    return 0;
}

static int tied(void *context, const struct slice *s)
{
    struct thread_report *r = context;
    if (!s->is_called || !is_stream_work(s->event.record->type))
        return 0;
    r->rows[s->call.thread].work++;
    r->rows[s->call.thread].gpu_ns += s->event.end_ns - s->event.begin_ns;
    return 0;
}

static int compare_rows(const void *left, const void *right)
{
    const struct thread_row *a = left, *b = right;
    if (!a->process || !b->process)
        return !a->process - !b->process;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return (a->thread->index > b->thread->index) - (a->thread->index < b->thread->index);
}

static int end(void *context)
{
    struct thread_report *r = context;
    qsort(r->rows, r->count, sizeof *r->rows, compare_rows);
    while (r->shown < r->count && r->rows[r->shown].process)
        r->shown++;
    return 0;
}

struct consumer thread_report_consumer(struct thread_report *r, bool has_work)
{
    return (struct consumer){
        .context = r, .needs = has_work ? WALK_WORK : 0, .take = take, .tied = tied, .end = end};
}

enum { TITLE, HOST, PID, TID, NAME, CALLS, FROM, TOTAL, SHARE, MAX, ERRORS, WORK, GPU, COLUMNS };

static const struct column columns[COLUMNS] = {
    [TITLE] = {NULL, "thread and process"},
    [HOST] = {"host"},
    [PID] = {"pid", NULL, COLUMN_NUMBER, .ascending = true},
    [TID] = {"tid", NULL, COLUMN_NUMBER, .ascending = true},
    [NAME] = {"thread"},
    [CALLS] = {"calls", "calls", COLUMN_COUNT, 12},
    [FROM] = {"estimated_from", NULL, COLUMN_COUNT},
    [TOTAL] = {"total_ns", "total", COLUMN_NS, 12},
    [SHARE] = {NULL, "share", COLUMN_SHARE, 7},
    [MAX] = {"max_ns", "max", COLUMN_NS, 12, .spare = 1},
    [ERRORS] = {"errors", "errors", COLUMN_COUNT, 9, .spare = 2},
    [WORK] = {"gpu_work", "GPU work", COLUMN_COUNT, 12, .spare = 2},
    [GPU] = {"gpu_ns", "GPU time", COLUMN_NS, 12, .spare = 1},
};

static void table_begins(struct table *t, enum report_format format)
{
    const struct thread_report *r = t->source;
    (void)format;
    t->is_there = r != NULL;
    t->count = r ? r->shown : 0;
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    const struct thread_report *r = t->source;
    const struct thread_row *row = &r->rows[index];
    char title[1200];
    thread_title(row->process, row->thread, title, sizeof title);
    cells[TITLE] = cell_owned(strdup(title));
    cells[HOST] = cell_text(row->process->header.host);
    cells[PID] = cell_number(row->process->header.pid);
    cells[TID] = cell_number(row->thread->tid);
    cells[NAME] = cell_text(row->thread->name);
    cells[CALLS] = cell_number(row->calls);
    cells[TOTAL] = cell_number(row->total_ns);
    cells[CALLS].estimated = cells[TOTAL].estimated = row->calls > row->recorded;
    if (row->calls > row->recorded)
        cells[FROM] = cell_number(row->recorded);
    cells[SHARE] = cell_share(row->total_ns, r->total_ns);
    cells[MAX] = cell_number(row->max_ns);
    if (row->errors || format != FORMAT_TEXT)
        cells[ERRORS] = cell_number(row->errors);
    if (row->work || format != FORMAT_TEXT) {
        cells[WORK] = cell_number(row->work);
        cells[GPU] = cell_number(row->gpu_ns);
    }
}

const struct table_info threads_table = {
    .name = "calls_by_thread",
    .key = "calls_by_thread",
    .title = "calls by thread, and the work of the devices that they made",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {SHARE, TOTAL, CALLS, MAX, ERRORS, GPU, WORK},
    .csv = {{CSV_THREAD,
             "host",
             0,
             0,
             {[FIELD_CALLS] = CALLS,
              [FIELD_TOTAL] = TOTAL,
              [FIELD_MAX] = MAX,
              [FIELD_ERRORS] = ERRORS}}},
    .csv_count = 1,
    .by = BY_THREAD,
    .text_limit = 40,
    .more = "... and %s more thread%s; --limit=N shows more of them",
    .begin = table_begins,
    .row = fill_row,
};
