/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the table of collectives that hang, and the first of them in one line. */
#include <inttypes.h>
#include <stdlib.h>

#include "analyse/collectives.h"
#include "base/json_text.h"
#include "base/text.h"
#include "read/process.h"

#define RANKS_NAMED 4           /* ranks named in a line */
#define TOGETHER_NS 2000000000u /* processes that one kill ended end within this time */

static const char *const states[] = {
    [COLLECTIVE_NOT_CALLED] = "not called",
    [COLLECTIVE_CALLED] = "called",
    [COLLECTIVE_NOT_FINISHED] = "kernel not finished",
    [COLLECTIVE_FINISHED] = "finished",
    [COLLECTIVE_NOT_KNOWN] = "called, not known whether finished",
    [COLLECTIVE_NOT_RECORDED] = "not recorded",
    [COLLECTIVE_DIFFERENT] = "called something else",
};

/* Indexed by ncclDataType_t. */
static uint64_t bytes_of(const struct collective_call *call)
{
    static const uint8_t sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    uint64_t bytes = 0;
    if (call->type >= sizeof sizes ||
        __builtin_mul_overflow(call->count, sizes[call->type], &bytes))
        return 0;
    return bytes;
}

/* Prints " of 8 ranks", and which job if there are several. */
static void print_of(const struct pending_collective *p, const char *what, FILE *out)
{
    fprintf(out, " of %s%u%s", p->has_own_numbers ? "a communicator of " : "", p->in->ranks, what);
    if (p->job != JOB_NONE)
        fprintf(out, " in job %u", p->job);
}

/* Prints "rank 5", by the job's count or by the communicator's. */
static void print_rank(const struct pending_row *row, FILE *out)
{
    const char *own = row->process ? process_rank(row->process) : NULL;
    if (own)
        fprintf(out, "rank %.16s", own);
    else if (row->rank != RANK_LATER)
        fprintf(out, "rank %u", row->rank);
    else
        fprintf(out, "process %u", row->process->header.pid);
}

/* "ncclAllReduce 37 (64.0 KiB)" */
static void print_call(const struct pending_collective *p, const struct collective_call *call,
                       FILE *out)
{
    char text[UNIT_TEXT_BYTES];
    fputs(call ? call->function->name : "collective", out);
    if (p->of->kind != COLLECTIVE_MAKING)
        fprintf(out, " %" PRIu64, p->sequence);
    if (call && bytes_of(call))
        fprintf(out, " (%s)", bytes_text(text, bytes_of(call)));
}

/* "ranks 5, 7 and 3 more": the first `count` rows. */
static void print_ranks(const struct pending_collective *p, uint32_t count, FILE *out)
{
    for (uint32_t i = 0; i < count && i < RANKS_NAMED; i++) {
        fputs(i ? ", " : "", out);
        print_rank(&p->rows[i], out);
    }
    if (count > RANKS_NAMED)
        fprintf(out, " and %u more", count - RANKS_NAMED);
}

/* How long before the newest time of all ranks that was. */
static uint64_t ago(const struct pending_row *row, uint64_t ns)
{
    return row->pending->now_ns > ns ? row->pending->now_ns - ns : 0;
}

/* Did most ranks that wait for it live on? If not, all were killed together after the hang. */
static bool ended_before(const struct pending_row *row)
{
    const struct pending_collective *p = row->pending;
    uint64_t end_ns = process_lived_ns(row->process);
    uint32_t longer = 0;
    for (uint32_t i = p->late_count; i < p->row_count; i++) {
        const struct process *other = p->rows[i].process;
        longer += other && (process_runs(other) || process_lived_ns(other) > end_ns + TOGETHER_NS);
    }
    return 2 * longer > p->row_count - p->late_count;
}

/* What happened to a process that no longer runs: it will never join. A process that was stopped
 * and killed later looks like one that was killed at once. */
static const char *fate_of(const struct pending_row *row)
{
    const struct process *p = row->process;
    if (p->is_stopped)
        return "; its process is stopped by a signal or a debugger";
    if (process_runs(p) || (!p->losses.counters[COUNTER_ENDED] && !ended_before(row)))
        return "";
    if (p->end_reason && p->end_reason != END_KILLED)
        return "; its process has ended";
    return p->losses.counters[COUNTER_ENDED]
               ? "; its recording ended before its process"
               : "; its process was killed or stopped, or called exec: find out why";
}

/* Prints what the row's rank did last. A stack of an earlier call says only where it was then. */
static void print_place(const struct pending_row *row, FILE *out)
{
    const struct process_place *place = row->place;
    char text[UNIT_TEXT_BYTES];
    if (place)
        fprintf(out, "its %s call was %s, %s ago", place->is_open ? "open" : "last",
                place->function->name, time_text(text, ago(row, place->begin_ns)));
    else
        fputs("none of its calls is recorded here", out);
    if (row->reported.line)
        fprintf(out,
                place->stack_ns < place->begin_ns ? "; newest stack, of an earlier call: %s"
                                                  : ", at %s",
                row->reported.line);
    fputs(row->process ? fate_of(row) : "", out);
}

static void print_one(const struct pending_collective *p, FILE *out)
{
    const struct pending_row *first = p->rows;
    char text[UNIT_TEXT_BYTES];
    if (!p->late_count) {
        print_call(p, p->call, out);
        fputs(" has not ended: all ranks", out);
        print_of(p, "", out);
        fprintf(out, " that are recorded called it %s ago", time_text(text, p->waited_ns));
        return;
    }
    print_ranks(p, p->late_count, out);
    if (p->is_mismatch) {
        fprintf(out, " called ");
        print_call(p, first->call, out);
        fputs(" where others", out);
        print_of(p, "", out);
        fputs(" called ", out);
        print_call(p, p->call, out);
        if (first->call->function == p->call->function)
            fprintf(out, ": count, type, operation or root differ");
        return;
    }
    print_of(p, "", out);
    fputs(p->late_count > 1 ? " have not called " : " has not called ", out);
    if (p->of->kind == COLLECTIVE_MESSAGE)
        fprintf(out, "its side of the message from %u to %u, ", p->of->from, p->of->to);
    print_call(p, p->call, out);
    fprintf(out, ", and others have waited %s for it; ", time_text(text, p->waited_ns));
    if (p->late_count > 1) {
        print_rank(first, out);
        fputs(": ", out);
    }
    print_place(first, out);
}

char *collectives_text(const struct collectives *c)
{
    struct new_text text;
    char number[UNIT_TEXT_BYTES];
    if (!c->pending.count || !c->pending.list[0].row_count)
        return NULL;
    FILE *out = new_text_begin(&text);
    print_one(&c->pending.list[0], out);
    if (c->pending.total > 1)
        fprintf(out, "; and %s more", count_text(number, c->pending.total - 1));
    return new_text_end(&text, out);
}

/* ---- the table ------------------------------------------------------------------------------- */

enum { NAME, STATE = 2, FUNCTION, BYTES = 5, COUNT, COMMUNICATOR, RANKS };
enum { FROM = 10, TO, SINCE, LAST, LAST_AGO, STACK_AGO = 16, TID = 23, THREAD };

#define ROW struct pending_row

static const struct column columns[] = {
    [NAME] = {NULL, "rank, what it called, and where it is", COLUMN_LINES,
              .doc = "the rank, what it called, and where it is"},
    {"waited_ns", "waited", COLUMN_NS, 13, MEMBER_OF(ROW, pending, waited_ns),
     .doc = "the longest time that others wait for this rank, or this rank for them"},
    [STATE] = {"state", "state", COLUMN_TEXT, 20,
               .doc = "not called, called, kernel not finished, finished, not recorded ..."},
    [FUNCTION] = {"function", .doc = "the NCCL function"},
    {"sequence", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, pending, sequence),
     .doc = "the number of the call on the communicator"},
    [BYTES] = {"bytes", NULL, COLUMN_BYTES, .doc = "bytes in the message"},
    [COUNT] = {"count", NULL, COLUMN_NUMBER, .doc = "elements in the message"},
    [COMMUNICATOR] = {"communicator",
                      .doc = "a number that identifies the communicator on all of its ranks"},
    [RANKS] = {"ranks", NULL, COLUMN_NUMBER, .doc = "ranks in the communicator"},
    {"communicator_rank", NULL, COLUMN_NUMBER, .ascending = true, MEMBER(ROW, rank),
     .lacks = LACKS_MAX, .doc = "the rank of the process in the communicator"},
    [FROM] = {"from", NULL, COLUMN_NUMBER, .ascending = true,
              .doc = "for a message: the rank that sends it"},
    [TO] = {"to", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the rank that receives it"},
    [SINCE] = {"called_ago_ns", NULL, COLUMN_NS, .doc = "how long ago the rank called it"},
    [LAST] = {"last_call", .doc = "the last call of the process"},
    [LAST_AGO] = {"last_call_ago_ns", NULL, COLUMN_NS, .doc = "the age of the last call"},
    {"last_call_open", NULL, COLUMN_BOOL, MEMBER_OF(ROW, place, is_open),
     .doc = "1: the last call has not returned"},
    [STACK_AGO] = {"stack_ago_ns", NULL, COLUMN_NS,
                   .doc = "how old the newest stack of the process is"},
    {"line", .lacks = LACKS_ZERO, MEMBER(ROW, reported.line),
     .doc = "the line of the program in the newest stack"},
    {"stack", NULL, COLUMN_LIST, .lacks = LACKS_ZERO, MEMBER(ROW, reported.json),
     .doc = "the newest stack, the innermost frame first"},
    COLUMN_HOST(ROW, process),
    COLUMN_RANK(ROW, process),
    {"job", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, pending, job),
     .lacks = LACKS_MAX, .doc = "the job of the communicator, if there are several jobs"},
    COLUMN_PID(ROW, process),
    [TID] = {"tid", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the thread of the last call"},
    [THREAD] = {"thread", .doc = "the name of that thread"},
};

/* "rank 5: ncclAllReduce 37 (64.0 KiB) of 8 ranks" */
static void print_title(const struct pending_row *row, FILE *out)
{
    const struct pending_collective *p = row->pending;
    print_rank(row, out);
    fputs(": ", out);
    print_call(p, row->state == COLLECTIVE_DIFFERENT ? row->call : p->call, out);
    print_of(p, " ranks", out);
}

static char *printed(const struct pending_row *row,
                     void (*print)(const struct pending_row *, FILE *))
{
    struct new_text made;
    FILE *out = new_text_begin(&made);
    print(row, out);
    char *text = new_text_end(&made, out), *line = json_line(text);
    free(text);
    return line;
}

/* The title, and below it "it was at ..." and the stack. */
static char *collectives_print_row_text(const struct pending_row *row)
{
    bool is_late = row->state == COLLECTIVE_NOT_CALLED || row->state == COLLECTIVE_DIFFERENT;
    char *title = printed(row, print_title), *stack = row->reported.lines;
    char *place = is_late ? printed(row, print_place) : NULL;
    char *all = text_printf("%s%s%s%s%s", title, place ? "\n" : "", place ? place : "",
                            stack ? "\n" : "", stack ? stack : "");
    free(place);
    free(title);
    return all;
}

static void fill_place(const struct pending_row *row, struct cell *cells)
{
    const struct process_place *place = row->place;
    if (!place)
        return;
    cells[LAST] = cell_text(place->function->name);
    cells[LAST_AGO] = cell_number(ago(row, place->begin_ns));
    cells[TID] = cell_number(place->thread->tid);
    cells[THREAD] = cell_text(place->thread->name);
    if (row->reported.line)
        cells[STACK_AGO] = cell_number(ago(row, place->stack_ns));
}

static void collectives_print_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct pending_row *row = table_item(t, index);
    const struct pending_collective *p = row->pending;
    const struct channel *of = p->of;
    const struct collective_call *call = row->call ? row->call : p->call;
    const char *name = call ? call->function->name : "collective";
    cells[NAME] =
        t->format == FORMAT_TEXT ? cell_owned(collectives_print_row_text(row)) : cell_text(name);
    cells[STATE] = cell_text(states[row->state]);
    cells[FUNCTION] = cell_text(name);
    if (call && !collectives_is_made(of->kind)) {
        cells[BYTES] = cell_number(bytes_of(call));
        cells[COUNT] = cell_number(call->count);
    }
    cells[COMMUNICATOR] = cell_owned(text_printf("0x%016" PRIx64, p->in->id));
    cells[RANKS] = cell_number(p->in->ranks);
    if (of->kind == COLLECTIVE_MESSAGE) {
        cells[FROM] = cell_number(of->from);
        cells[TO] = cell_number(of->to);
    }
    if (row->call)
        cells[SINCE] = cell_number(ago(row, row->call->begin_ns));
    fill_place(row, cells);
}

/* Counts collectives, not rows. */
static bool collectives_print_fill_foot(const struct table *t, struct cell *cells)
{
    const struct collectives *c = t->source;
    if (c->pending.total == c->pending.count)
        return false;
    cells[NAME] = cell_more(c->pending.total - c->pending.count);
    return true;
}

const struct table_info collectives_table = {
    .name = "collectives",
    .key = "collectives",
    .needs = PART_COLLECTIVES,
    .title = "collectives that a rank has not called, that never end, or that differ",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct collectives, pending.rows, pending.row_count)},
    .place = PLACE_URGENT,
    .row = collectives_print_fill_row,
    .foot = collectives_print_fill_foot,
};
