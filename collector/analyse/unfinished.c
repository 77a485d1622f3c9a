/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/unfinished.h"

#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "read/process.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

#define DEVICE_ANY UINT64_MAX

/* True if its work may still run, or ran when it was killed. */
static bool may_hang(const struct process *p)
{
    return (p->end_reason != END_EXIT && p->end_reason != END_QUICK) || p->losses.open_calls ||
           process_meta(p, PROCESS_RECOVERED);
}

void unfinished_init(struct unfinished *u, struct walk *walk)
{
    const struct recording *rec = walk->rec;
    bool any = false;
    *u = (struct unfinished){.walk = walk};
    for (uint32_t i = 0; i < rec->count; i++)
        any |= may_hang(rec->processes[i]);
    if (!any)
        return;
    u->processes = memory_new(rec->count, sizeof *u->processes);
    u->launches = memory_new(UNFINISHED_LAUNCHES_MAX, sizeof *u->launches);
    u->by_id = memory_new(UNFINISHED_LAUNCHES_MAX, sizeof *u->by_id);
    for (uint32_t i = 0; i < rec->count; i++)
        u->processes[i].may_hang = may_hang(rec->processes[i]);
}

void unfinished_release(struct unfinished *u)
{
    key_map_release(&u->streams_of);
    key_map_release(&u->events_of);
    key_map_release(&u->ended);
    free(u->processes);
    free(u->streams);
    free(u->events);
    free(u->launches);
    free(u->by_id);
    free(u->rows);
}

/* ---- the walk ---- */

static uint64_t event_arg(const struct event *e)
{
    return function_arg_of(e->function, e->record, ARG_EVENT, 0);
}

/* True if the stream then waits for the host or others, which no device record shows. */
static bool is_stream_wait(const struct function *f)
{
    return f->does == API_DOES_HOST_LAUNCH || f->does == API_DOES_STREAM_WAIT;
}

/* The key of a stream. Default streams belong to the thread's current device, or to the thread. */
static struct key unfinished_key_of(const struct process *p, const struct thread *t,
                                    uint64_t handle)
{
    return (struct key){p->index, handle, handle <= 2 ? t->index + 1ull : 0};
}

/* Notes that all launches into the stream up to then have ended. */
static void end_until(struct unfinished_stream *s, uint64_t ns)
{
    s->done_ns = ns > s->done_ns ? ns : s->done_ns;
}

static void unfinished_take_launch(struct unfinished *u, const struct slice *slice)
{
    const struct event *e = &slice->event;
    uint64_t handle;
    if (!function_stream(e->function, e->record, &handle))
        return;
    const struct unfinished_stream new = {.process = e->process->index, .handle = handle};
    const struct key key = unfinished_key_of(e->process, e->thread, handle);
    uint32_t stream = KEY_MAP_ITEM(&u->streams_of, key, u->streams, u->stream_count,
                                   UNFINISHED_STREAMS_MAX, &new);
    if (!stream)
        return;
    uint32_t at = u->launch_count++ % UNFINISHED_LAUNCHES_MAX;
    struct unfinished_launch *l = &u->launches[at];
    const struct host_span *op = walk_op(slice);
    *l = (struct unfinished_launch){.process = e->process,
                                    .thread = e->thread,
                                    .function = e->function,
                                    .kernel = walk_launched(slice),
                                    .op = op ? op->text : NULL,
                                    .begin_ns = e->begin_ns,
                                    .stream = stream - 1,
                                    .id = e->record->correlation,
                                    .stack = e->record->stack_id};
    u->by_id[l->id % UNFINISHED_LAUNCHES_MAX] = at + 1;
}

/* The index + 1 of the stream in a call; 0 if nothing was launched into it. */
static uint64_t named_stream(const struct unfinished *u, const struct event *e)
{
    uint64_t handle;
    return function_stream(e->function, e->record, &handle)
               ? key_map_get(&u->streams_of, unfinished_key_of(e->process, e->thread, handle))
               : 0;
}

/* What the event in a call was last recorded in; NULL: it has no event, or not a known one. */
static const struct unfinished_event *named_event(const struct unfinished *u, const struct event *e)
{
    uint64_t known = key_map_get(&u->events_of, (struct key){e->process->index, event_arg(e), 0});
    return known ? &u->events[known - 1] : NULL;
}

static void take_record(struct unfinished *u, const struct event *e)
{
    const struct unfinished_event record = {(uint32_t)named_stream(u, e), e->begin_ns};
    const struct key key = {e->process->index, event_arg(e), 0};
    uint32_t place = key.b ? KEY_MAP_ITEM(&u->events_of, key, u->events, u->event_count,
                                          UNFINISHED_EVENTS_MAX, &record)
                           : 0;
    if (place)
        u->events[place - 1] = record;
}

/* Takes a synchronisation that returned, or a query that found all done: earlier work has ended in
 * its stream, before its event, or on its device. */
static void take_sync(struct unfinished *u, const struct event *e)
{
    const struct unfinished_event *event = named_event(u, e);
    uint64_t handle, stream = event ? event->stream : named_stream(u, e);
    bool is_of_all = !function_stream(e->function, e->record, &handle) && !event_arg(e);
    if (stream)
        end_until(&u->streams[stream - 1], event ? event->ns : e->begin_ns);
    else if (e->function->does == API_DOES_SYNC && is_of_all)
        u->processes[e->process->index].synced_ns = e->begin_ns;
}

/* Takes a call that has waited for long: for a stream, or for all. */
static void unfinished_take_wait(struct unfinished *u, const struct event *e)
{
    struct unfinished_process *p = &u->processes[e->process->index];
    const struct unfinished_event *event = named_event(u, e);
    uint64_t handle, stream = event ? event->stream : named_stream(u, e);
    unsigned class = e->function->class;
    if (e->end_ns - e->begin_ns < SURVEY_HANG_NS)
        return;
    p->waits = true;
    if (class != API_SYNC && class != API_COPY && class != API_ALLOC)
        return;
    p->waits_for_all |= !stream && !function_stream(e->function, e->record, &handle);
    if (stream)
        u->streams[stream - 1].is_waited_for = true;
}

static int unfinished_take(void *context, const struct slice *s)
{
    struct unfinished *u = context;
    const struct event *e = &s->event;
    const struct record *r = e->record;
    if (r->type != RECORD_CALL || !unfinished_may_of(u, e->process))
        return 0;
    if (r->flags & RECORD_OPEN) {
        unfinished_take_wait(u, e);
        return 0;
    }
    unsigned does = e->function->does;
    if (r->result != 0 || r->flags & (RECORD_CAPTURED | RECORD_STALE | RECORD_NESTED))
        return 0;
    if (does == API_DOES_LAUNCH || does == API_DOES_GRAPH_LAUNCH || is_stream_wait(e->function))
        unfinished_take_launch(u, s);
    else if (does == API_DOES_EVENT_RECORD)
        take_record(u, e);
    else if (does == API_DOES_SYNC || does == API_DOES_QUERY)
        take_sync(u, e);
    return 0;
}

static void note_ended(struct unfinished *u, const struct unfinished_launch *l)
{
    if (l->kernel)
        key_map_set(&u->ended, (struct key){l->process->index, (uintptr_t)l->kernel, 0}, 1);
}

/* Work with a record has ended, and so has all earlier work of its launch's stream. */
static int take_ended(void *context, const struct slice *s)
{
    struct unfinished *u = context;
    const struct event *e = &s->event;
    struct unfinished_process *process = &u->processes[e->process->index];
    if (!s->is_called || !process->may_hang)
        return 0;
    uint64_t device = record_arg(e->record, KERNEL_DEVICE) + 1;
    if (process->device != device)
        process->device = process->device ? DEVICE_ANY : device;
    uint32_t at = u->by_id[s->call.id % UNFINISHED_LAUNCHES_MAX];
    struct unfinished_launch *l = at ? &u->launches[at - 1] : NULL;
    if (!l || l->id != s->call.id || l->process != e->process || l->begin_ns != s->call.begin_ns)
        return 0;
    struct unfinished_stream *stream = &u->streams[l->stream];
    stream->device = device - 1;
    stream->number = record_arg(e->record, KERNEL_STREAM);
    stream->is_known = true;
    end_until(stream, l->begin_ns);
    note_ended(u, l);
    return 0;
}

/* ---- its end ---- */

/*
 * Ranks pending launches by how likely they hang. A kernel that waits for other ranks comes first,
 * then a wait for the host, which may take a lock or wrongly call CUDA. A kernel that never ended
 * before is likelier than one that did.
 */
static unsigned likelihood(const struct unfinished *u, const struct unfinished_launch *l)
{
    if (l->kernel && nccl_is_kernel(l->kernel))
        return 3;
    if (is_stream_wait(l->function))
        return 2;
    if (!l->kernel)
        return 0;
    return !key_map_get(&u->ended, (struct key){l->process->index, (uintptr_t)l->kernel, 0});
}

static bool is_waited_for(const struct unfinished *u, const struct unfinished_stream *s)
{
    return s->is_waited_for || u->processes[s->process].waits_for_all;
}

static void count(const struct unfinished *u, struct unfinished_row *row,
                  const struct unfinished_launch *l)
{
    if (is_stream_wait(l->function) && !is_waited_for(u, &u->streams[l->stream]))
        return; /* it never has a record, even when it ended */
    if (!row->count || likelihood(u, l) > likelihood(u, &row->launch))
        row->launch = *l;
    row->count++;
}

/* Sets the row's age and state; false if there is nothing to report. */
static bool unfinished_judge(const struct unfinished *u, struct unfinished_row *row)
{
    const struct process *p = row->launch.process;
    bool waited = is_waited_for(u, row->stream);
    bool has_gpu = process_expects_gpu(p) && process_wants_kernels(p);
    uint64_t last_ns = u->walk->last_ns[p->index];
    row->age_ns = last_ns > row->launch.begin_ns ? last_ns - row->launch.begin_ns : 0;
    row->state = !waited ? UNFINISHED_MAYBE : has_gpu ? UNFINISHED_WAITED : UNFINISHED_HOST;
    return waited || (has_gpu && (unfinished_waits(u, p) || row->age_ns >= SURVEY_HANG_NS));
}

static int unfinished_compare_rows(const void *left, const void *right)
{
    const struct unfinished_row *a = left, *b = right;
    return ORDER(a->state == UNFINISHED_MAYBE, b->state == UNFINISHED_MAYBE)
               ?: ORDER(b->age_ns, a->age_ns);
}

/* The remembered launch number `i`, oldest first; NULL at the end. */
static const struct unfinished_launch *launch_at(const struct unfinished *u, uint64_t i)
{
    uint64_t first =
        u->launch_count > UNFINISHED_LAUNCHES_MAX ? u->launch_count - UNFINISHED_LAUNCHES_MAX : 0;
    return first + i < u->launch_count ? &u->launches[(first + i) % UNFINISHED_LAUNCHES_MAX] : NULL;
}

/* Synchronised work has ended, with or without records. */
static void end_synced(struct unfinished *u)
{
    const struct unfinished_launch *l;
    for (uint32_t i = 0; i < u->stream_count; i++) {
        const struct unfinished_process *p = &u->processes[u->streams[i].process];
        if (p->device != DEVICE_ANY)
            end_until(&u->streams[i], p->synced_ns);
    }
    for (uint64_t i = 0; (l = launch_at(u, i)); i++)
        if (l->begin_ns <= u->streams[l->stream].done_ns)
            note_ended(u, l);
}

static int unfinished_end(void *context)
{
    struct unfinished *u = context;
    const struct unfinished_launch *l;
    uint32_t rows = 0;
    u->rows = memory_new(u->stream_count + 1u, sizeof *u->rows);
    end_synced(u);
    for (uint64_t i = 0; (l = launch_at(u, i)); i++)
        if (l->begin_ns > u->streams[l->stream].done_ns)
            count(u, &u->rows[l->stream], l);
    for (uint32_t i = 0; i < u->stream_count; i++) {
        struct unfinished_row *row = &u->rows[i];
        row->stream = &u->streams[i];
        row->reported.process = row->launch.process;
        row->reported.stack = row->launch.stack;
        if (row->count && unfinished_judge(u, row))
            u->rows[rows++] = *row;
    }
    ARRAY_SORT(u->rows, rows, unfinished_compare_rows);
    u->row_count = rows;
    return 0;
}

uint64_t unfinished_done_ns(const struct unfinished *u, const struct process *p,
                            const struct thread *t, uint64_t handle, bool *is_waited)
{
    uint64_t known = key_map_get(&u->streams_of, unfinished_key_of(p, t, handle));
    *is_waited = known ? is_waited_for(u, &u->streams[known - 1])
                       : unfinished_may_of(u, p) && u->processes[p->index].waits_for_all;
    return known ? u->streams[known - 1].done_ns : 0;
}

struct consumer unfinished_consumer(struct unfinished *u)
{
    return (struct consumer){.context = u,
                             .needs = WALK_WORK | WALK_STACKS | WALK_SPANS,
                             .sees_filtered = true, /* a hang concerns the whole recording */
                             .take = unfinished_take,
                             .take_work = take_ended,
                             .end = unfinished_end};
}

static const char *unfinished_name_of(const struct unfinished_row *row)
{
    return row->launch.kernel ? row->launch.kernel->shown : row->launch.function->name;
}

char *unfinished_text(const struct unfinished_row *row)
{
    char number[UNIT_TEXT_BYTES];
    return row->count > 1 ? text_printf("%s, or another of %s", unfinished_name_of(row),
                                        count_text(number, row->count))
                          : memory_text(unfinished_name_of(row));
}

static const char *const states[] = {
    [UNFINISHED_WAITED] = "waited for",
    [UNFINISHED_MAYBE] = "may have ended",
    [UNFINISHED_HOST] = "device not recorded",
};

/* The row as one line of new text. */
static char *unfinished_row_text(const struct unfinished_row *row)
{
    const struct unfinished_launch *l = &row->launch;
    char title[1200], *what = unfinished_text(row);
    struct new_text made;
    FILE *out = new_text_begin(&made);
    fputs(what, out);
    if (row->stream->is_known)
        fprintf(out, ", on stream %llu of GPU %llu", (unsigned long long)row->stream->number,
                (unsigned long long)row->stream->device);
    else
        fprintf(out, ", on stream 0x%llx", (unsigned long long)row->stream->handle);
    fprintf(out, ", from %s", thread_title(l->process, l->thread, title, sizeof title));
    if (l->op)
        fprintf(out, ", in %s", l->op->shown);
    if (row->state != UNFINISHED_WAITED)
        fprintf(out, "; %s", states[row->state]);
    free(what);
    return new_text_end(&made, out);
}

enum { NAME, STATE = 5, DEVICE, STREAM };

#define ROW struct unfinished_row

static const struct column columns[] = {
    [NAME] = {NULL, "kernel, stream, thread and process", COLUMN_LINES,
              .doc = "the kernel, its stream, thread and process"},
    {"age_ns", "launched ago", COLUMN_NS, 13, MEMBER(ROW, age_ns),
     .doc = "how long ago it was launched"},
    {"launches", "launches", COLUMN_COUNT, 9, .spare = 1, MEMBER(ROW, count),
     .doc = "launches on that stream that have not finished"},
    {"kernel", MEMBER_OF(ROW, launch.kernel, shown), .doc = "the kernel of the first of them"},
    {"function", MEMBER_OF(ROW, launch.function, name),
     .doc = "the call that launched that kernel"},
    [STATE] = {"state", .doc = "waited for, may have ended, or device not recorded"},
    [DEVICE] = {"device", NULL, COLUMN_NUMBER, .ascending = true, .doc = "the GPU"},
    [STREAM] = {"stream", NULL, COLUMN_NUMBER, .ascending = true,
                .doc = "the number of the stream"},
    {"handle", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, stream, handle),
     .doc = "the program's handle of the stream"},
    {"operator", MEMBER_OF(ROW, launch.op, shown), .doc = "the operator that launched it"},
    {"line", .lacks = LACKS_ZERO, MEMBER(ROW, reported.line),
     .doc = "the line of the program that launched it"},
    {"stack", .type = COLUMN_LIST, .lacks = LACKS_ZERO, MEMBER(ROW, reported.json),
     .doc = "the stack of the launch, the innermost frame first"},
    COLUMN_HOST(ROW, launch.process),
    COLUMN_RANK(ROW, launch.process),
    COLUMN_JOB(ROW, launch.process),
    COLUMN_PID(ROW, launch.process),
    {"tid", NULL, COLUMN_NUMBER, .ascending = true, MEMBER_OF(ROW, launch.thread, tid),
     .doc = "the thread that launched it"},
    {"thread", MEMBER_OF(ROW, launch.thread, name), .doc = "the name of that thread"},
};

static void unfinished_fill_row(const struct table *t, uint32_t index, struct cell *cells)
{
    const struct unfinished_row *row = table_item(t, index);
    cells[NAME] = t->format == FORMAT_TEXT
                      ? cell_owned(reported_stack_below(&row->reported, unfinished_row_text(row)))
                      : cell_text(unfinished_name_of(row));
    cells[STATE] = cell_text(states[row->state]);
    if (row->stream->is_known) {
        cells[DEVICE] = cell_number(row->stream->device);
        cells[STREAM] = cell_number(row->stream->number);
    }
}

const struct table_info unfinished_table = {
    .name = "unfinished",
    .key = "unfinished",
    .needs = PART_HANGS,
    .title = "launches that had not finished at the end of the recording, by stream",
    TABLE_COLUMNS(columns),
    .rows = {ROWS_IN(struct unfinished, rows, row_count)},
    .place = PLACE_URGENT,
    .row = unfinished_fill_row,
};
