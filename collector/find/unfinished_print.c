/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what had not finished. */
#include <stdlib.h>

#include "base/json_text.h"
#include "base/unit_text.h"
#include "find/unfinished.h"
#include "read/process_title.h"

static const char *name_of(const struct unfinished_row *row)
{
    return row->launch.kernel ? row->launch.kernel->shown : row->launch.function->name;
}

char *unfinished_text(const struct unfinished_row *row)
{
    char number[UNIT_TEXT_BYTES], *text = NULL;
    int length = row->count > 1 ? asprintf(&text, "%s, or another of %s", name_of(row),
                                           count_text(number, row->count))
                                : asprintf(&text, "%s", name_of(row));
    return length < 0 ? NULL : text;
}

/* One line, with the stack below it, in new memory. */
static char *row_text(const struct unfinished *u, const struct unfinished_row *row)
{
    static const char *const ends[] = {
        [UNFINISHED_WAITED] = "",
        [UNFINISHED_MAYBE] = "; may have ended: what the device did last is not known",
        [UNFINISHED_HOST] = "; since the last synchronisation: the device is not recorded",
    };
    const struct unfinished_launch *l = &row->launch;
    char title[1200], *text = NULL, *stack = told_stack_text(u->stacks, row->node);
    char *what = unfinished_text(row);
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out || !what)
        goto done;
    fputs(what, out);
    if (row->stream->is_known)
        fprintf(out, ", on stream %llu of GPU %llu", (unsigned long long)row->stream->number,
                (unsigned long long)row->stream->device);
    else
        fprintf(out, ", on stream 0x%llx", (unsigned long long)row->stream->handle);
    fprintf(out, ", from %s", thread_title(l->process, l->thread, title, sizeof title));
    if (l->op)
        fprintf(out, ", in %s", l->op->shown);
    fputs(ends[row->state], out);
done:
    if (out && fclose(out) != 0) {
        free(text);
        text = NULL;
    }
    char *line = text && what ? json_line(text) : NULL, *all = NULL;
    if (line && asprintf(&all, "%s%s", line, stack ? stack : "") < 0)
        all = NULL;
    free(line);
    free(text);
    free(what);
    free(stack);
    return all;
}

enum {
    NAME,
    AGE,
    COUNT,
    KERNEL,
    FUNCTION,
    STATE,
    DEVICE,
    STREAM,
    HANDLE,
    OPERATOR,
    LINE,
    STACK,
    HOST,
    RANK,
    JOB,
    PID,
    TID,
    THREAD,
    COLUMNS
};

static const struct column columns[COLUMNS] = {
    [NAME] = {NULL, "kernel, stream, thread and process", COLUMN_LINES},
    [AGE] = {"age_ns", "launched ago", COLUMN_NS, 13},
    [COUNT] = {"launches", "launches", COLUMN_COUNT, 9, .spare = 1},
    [KERNEL] = {"kernel"},
    [FUNCTION] = {"function"},
    [STATE] = {"state"},
    [DEVICE] = {"device", .type = COLUMN_NUMBER, .ascending = true},
    [STREAM] = {"stream", .type = COLUMN_NUMBER, .ascending = true},
    [HANDLE] = {"handle", .type = COLUMN_NUMBER, .ascending = true},
    [OPERATOR] = {"operator"},
    [LINE] = {"line"},
    [STACK] = {"stack", .type = COLUMN_LIST},
    [HOST] = {"host"},
    [RANK] = {"rank"},
    [JOB] = {"job", .type = COLUMN_NUMBER, .ascending = true},
    [PID] = {"pid", .type = COLUMN_NUMBER, .ascending = true},
    [TID] = {"tid", .type = COLUMN_NUMBER, .ascending = true},
    [THREAD] = {"thread"},
};

static void table_begins(struct table *t, enum report_format format)
{
    const struct unfinished *u = t->source;
    t->count = u->row_count;
    t->is_there = t->count || format == FORMAT_JSON;
}

static void fill_row(const struct table *t, uint32_t index, enum report_format format,
                     struct cell *cells)
{
    static const char *const states[] = {
        [UNFINISHED_WAITED] = "waited for",
        [UNFINISHED_MAYBE] = "may have ended",
        [UNFINISHED_HOST] = "device not recorded",
    };
    const struct unfinished *u = t->source;
    const struct unfinished_row *row = &u->rows[index];
    const struct unfinished_launch *l = &row->launch;
    cells[NAME] = format == FORMAT_TEXT ? cell_owned(row_text(u, row)) : cell_text(name_of(row));
    cells[AGE] = cell_number(row->age_ns);
    cells[COUNT] = cell_number(row->count);
    if (l->kernel)
        cells[KERNEL] = cell_text(l->kernel->shown);
    cells[FUNCTION] = cell_text(l->function->name);
    cells[STATE] = cell_text(states[row->state]);
    if (row->stream->is_known) {
        cells[DEVICE] = cell_number(row->stream->device);
        cells[STREAM] = cell_number(row->stream->number);
    }
    cells[HANDLE] = cell_number(row->stream->handle);
    if (l->op)
        cells[OPERATOR] = cell_text(l->op->shown);
    if (row->node && format == FORMAT_JSON) {
        cells[LINE] = cell_owned(told_stack_line(u->stacks, row->node));
        cells[STACK] = cell_owned(told_stack_json(u->stacks, row->node));
    }
    cells[HOST] = cell_text(l->process->header.host);
    cells[RANK] = cell_text(process_rank(l->process));
    if (l->process->is_of_several)
        cells[JOB] = cell_number(l->process->job);
    cells[PID] = cell_number(l->process->header.pid);
    cells[TID] = cell_number(l->thread->tid);
    cells[THREAD] = cell_text(l->thread->name);
}

/* Those that are not kept. */
static bool fill_foot(const struct table *t, struct cell *cells)
{
    const struct unfinished *u = t->source;
    if (u->total == u->row_count)
        return false;
    cells[NAME] = cell_more(u->total - u->row_count);
    return true;
}

const struct table_info unfinished_table = {
    .name = "unfinished",
    .key = "unfinished",
    .title = "launched, not finished when the process ended or was looked at, by stream",
    .columns = columns,
    .column_count = COLUMNS,
    .text = {AGE, COUNT},
    .place = PLACE_URGENT,
    .json_empty = "[]",
    .begin = table_begins,
    .row = fill_row,
    .foot = fill_foot,
};
