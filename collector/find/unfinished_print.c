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

enum { NAME, STATE = 5, DEVICE, STREAM, LINE = 10, STACK };

#define ROW struct unfinished_row

static const struct column columns[] = {
    [NAME] = {NULL, "kernel, stream, thread and process", COLUMN_LINES},
    {"age_ns", "launched ago", COLUMN_NS, 13, MEMBER(ROW, age_ns)},
    {"launches", "launches", COLUMN_COUNT, 9, .spare = 1, MEMBER(ROW, count)},
    {"kernel", MEMBER_OF(ROW, launch.kernel, shown)},
    {"function", MEMBER_OF(ROW, launch.function, name)},
    [STATE] = {"state"},
    [DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true},
    [STREAM] = {"stream", NULL, COLUMN_NUMBER, .ascending = true},
    {"handle", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, stream, handle)},
    {"operator", MEMBER_OF(ROW, launch.op, shown)},
    [LINE] = {"line"},
    [STACK] = {"stack", .type = COLUMN_LIST},
    COLUMN_HOST(ROW, launch.process),
    COLUMN_RANK(ROW, launch.process),
    COLUMN_JOB(ROW, launch.process),
    COLUMN_PID(ROW, launch.process),
    {"tid", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, launch.thread, tid)},
    {"thread", MEMBER_OF(ROW, launch.thread, name)},
};

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
    cells[NAME] = format == FORMAT_TEXT ? cell_owned(row_text(u, row)) : cell_text(name_of(row));
    cells[STATE] = cell_text(states[row->state]);
    if (row->stream->is_known) {
        cells[DEVICE] = cell_number(row->stream->device);
        cells[STREAM] = cell_number(row->stream->number);
    }
    if (row->node && format == FORMAT_JSON) {
        cells[LINE] = cell_owned(told_stack_line(u->stacks, row->node));
        cells[STACK] = cell_owned(told_stack_json(u->stacks, row->node));
    }
}

const struct table_info unfinished_table = {
    .name = "unfinished",
    .key = "unfinished",
    .title = "launched, not finished when the process ended or was looked at, by stream",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct unfinished, rows, row_count),
             .total = offsetof(struct unfinished, total)},
    .place = PLACE_URGENT,
    .json_empty = "[]",
    .row = fill_row,
};
