/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did (run --sample, --gaps, --os): calls of the C library that waited, waits for
 * Python's interpreter lock and garbage collections as slices of their threads, samples as instants
 * with their stack. Who holds the lock is a row of the process: holds cross ranges and operators,
 * and exclude each other. A slice that would cross another of its thread stands on a row beside it.
 */
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "trace/chrome.h"

#define SAMPLE_STACK_BYTES 512 /* there are many; stackFrames has all of each */
#define TEXT_BYTES_MAX     (6 * RECORD_BYTES_MAX + 2)

_Static_assert(CHROME_EVENT_BYTES + 2 * TEXT_BYTES_MAX + CHROME_STACK_BYTES < OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

static int stack_of(struct trace_writer *w, const struct slice *s, uint32_t stack, uint32_t *node)
{
    return chrome_stack(w, s->event.process, stack, walk_range(s, false), node);
}

/* The row of a slice, and its times as they are shown. NULL: no memory. */
static struct trace_row *place(struct trace_writer *w, const struct slice *s, bool is_hold,
                               uint64_t *begin_ns, uint64_t *end_ns)
{
    const struct event *e = &s->event;
    const struct thread *t = e->thread;
    struct trace_row *row = chrome_row(w, t->index);
    *begin_ns = chrome_time(w, e->begin_ns);
    *end_ns = chrome_time(w, e->end_ns);
    if (!is_hold && !t->own && trace_row_holds(row, *begin_ns, *end_ns)) {
        trace_row_fit(row, begin_ns, end_ns);
    } else {
        struct gpu_row *beside =
            gpu_rows_get(&w->gpu_rows, e->process, is_hold ? ROW_GIL : ROW_HOST, 0,
                         is_hold || t->own ? 0 : t->index + 1ull, *begin_ns);
        if (beside && !beside->named) {
            beside->thread = t->index;
            if (chrome_name_row(w, beside) < 0)
                return NULL;
        }
        if (!beside)
            return NULL;
        gpu_row_fit(beside, begin_ns, end_ns);
        row = &beside->row;
    }
    chrome_reach(w, e->process, *begin_ns, *end_ns);
    return row;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static char *put_os_call(char *out, const struct record *r)
{
    uint64_t fd = record_arg(r, OS_CALL_FD), object = record_arg(r, OS_CALL_OBJECT);
    uint64_t bytes = record_arg(r, OS_CALL_BYTES), error = record_arg(r, OS_CALL_ERROR);
    if (fd)
        out = PUT_FIELD(out, "fd", fd - 1);
    if (r->byte_count)
        out = json_escape(PUT(out, ",\"file\":"), (const char *)r->bytes, r->byte_count);
    if (object) {
        out = json_hex(PUT(out, ",\"object\":\""), object);
        *out++ = '"';
    }
    if (bytes)
        out = PUT_FIELD(out, "bytes", bytes);
    if (r->result)
        out = json_signed(PUT(out, ",\"result\":"), (uint32_t)r->result);
    return error ? PUT_FIELD(out, "errno", error) : out;
}

static char *put_gil(char *out, const struct record *r)
{
    uint64_t other = record_arg(r, GIL_OTHER), switches = record_arg(r, GIL_SWITCHES);
    if (other)
        out = PUT_FIELD(out, "held before by tid", other);
    return switches ? PUT_FIELD(out, "asked again", switches) : out;
}

static char *put_gc(char *out, const struct record *r)
{
    out = PUT_FIELD(out, "generation", r->code);
    out = PUT_FIELD(out, "collected", record_arg(r, GC_COLLECTED));
    return PUT_FIELD(out, "uncollectable", record_arg(r, GC_UNCOLLECTABLE));
}

static int put_slice(struct trace_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    bool is_hold = r->type == RECORD_GIL && r->code == GIL_HELD;
    const char *category = r->type == RECORD_OS_CALL ? "os" : r->type == RECORD_GIL ? "gil" : "gc";
    const struct kernel_name *function = r->type == RECORD_OS_CALL ? walk_os_function(s) : NULL;
    const char *name = r->type == RECORD_OS_CALL ? "\"OS call\""
                       : r->type == RECORD_GC    ? "\"garbage collection\""
                                                 : "\"wait for the GIL\"";
    char holder[6 * THREAD_NAME_BYTES_MAX + 32];
    size_t bytes = strlen(name);
    uint64_t begin_ns, end_ns;
    uint32_t stack;
    int error = stack_of(w, s, r->stack_id, &stack);
    const struct trace_row *row = error < 0 ? NULL : place(w, s, is_hold, &begin_ns, &end_ns);
    if (!row)
        return error < 0 ? error : GPUPROF_NO_MEMORY;
    if (is_hold) {
        const struct thread *t = s->event.thread;
        char *end = json_escape(holder, t->name, strlen(t->name)) - 1;
        bytes = (size_t)(end - holder) + (size_t)sprintf(end, " (tid %u)\"", t->tid);
        name = holder;
    } else if (function) {
        name = function->json;
        bytes = function->json_bytes;
    }
    char *out = output_room(w->out, CHROME_EVENT_BYTES + bytes + 6 * r->byte_count + 2 +
                                        (stack ? CHROME_STACK_BYTES : 0));
    out = chrome_begin_slice(w, out, category, name, bytes, row, begin_ns, end_ns);
    out = r->type == RECORD_OS_CALL ? put_os_call(out, r)
          : r->type == RECORD_GIL   ? put_gil(out, r)
                                    : put_gc(out, r);
    chrome_end_slice(w, out, stack);
    return 0;
}

/* ---- samples --------------------------------------------------------------------------------- */

/* The thread of the process with that tid, or else the one whose block says it. */
static int thread_of(struct trace_writer *w, const struct slice *s, uint32_t *index)
{
    struct process *p = s->event.process;
    uint64_t tid = record_arg(s->event.record, SAMPLE_TID);
    int error = 0;
    *index = s->event.thread->index;
    if (!tid)
        return 0;
    struct process_span *span = chrome_span(w, p);
    for (uint32_t i = 0; error == 0 && !span->has_tids && i < p->threads.count; i++)
        if (p->threads.threads[i]->tid)
            error = key_map_set(&w->tids, (struct key){p->index, p->threads.threads[i]->tid, 0},
                                p->threads.threads[i]->index + 1ull);
    span->has_tids = true;
    uint64_t found = key_map_get(&w->tids, (struct key){p->index, tid, 0});
    *index = found ? (uint32_t)(found - 1) : *index;
    return error == GPUPROF_LIMIT ? 0 : error;
}

/* What a thread was seen doing from outside. */
static char *put_looked(struct trace_writer *w, char *out, const struct record *r, uint32_t holder)
{
    char state = (char)record_arg(r, SAMPLE_STATE);
    uint64_t call = record_arg(r, SAMPLE_SYSCALL);
    if (record_arg(r, SAMPLE_TID))
        out = PUT_FIELD(out, "tid", record_arg(r, SAMPLE_TID));
    if (state >= 'A' && state <= 'z' && state != '\\') {
        out = PUT(out, ",\"state\":\"");
        *out++ = state;
        *out++ = '"';
    }
    if (call)
        out = PUT_FIELD(out, "system call", call - 1);
    if (record_arg(r, SAMPLE_HOLDER))
        out = PUT_FIELD(out, "GIL held by tid", record_arg(r, SAMPLE_HOLDER));
    return holder ? chrome_put_stack(w, out, "holder", holder, SAMPLE_STACK_BYTES) : out;
}

static int put_sample(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    bool is_gap = r->code != SAMPLE_CPU;
    uint64_t at_ns = chrome_time(w, e->begin_ns), flags = record_arg(r, SAMPLE_FLAGS);
    uint32_t stack, holder = 0, thread = e->thread->index;
    int error = stack_of(w, s, r->stack_id, &stack);
    if (error == 0 && record_arg(r, SAMPLE_HOLDER_STACK) <= UINT32_MAX)
        error = stack_of(w, s, (uint32_t)record_arg(r, SAMPLE_HOLDER_STACK), &holder);
    if (error == 0)
        error = thread_of(w, s, &thread);
    if (error < 0)
        return error;
    const struct shown_frame *frame = stack ? call_tree_frame(w->scope.tree, stack) : NULL;
    const char *name = flags & SAMPLE_IN_GPUPROF ? "\"in gpuprof\"" : "\"no stack\"";
    char *out = output_room(w->out, CHROME_EVENT_BYTES + (frame ? frame->json_bytes : 0) +
                                        2 * SAMPLE_STACK_BYTES);
    out = PUT(out, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"");
    out = is_gap ? PUT(out, "gap_sample") : PUT(out, "cpu_sample");
    out = PUT(out, "\",\"name\":");
    out = frame ? chrome_put(out, frame->json, frame->json_bytes)
                : chrome_put(out, name, strlen(name));
    out = chrome_put_ids(PUT(out, ",\"pid\":"), chrome_row(w, thread));
    out = json_microseconds(out, at_ns);
    w->arguments = out = PUT(out, ",\"args\":");
    out = json_microseconds(PUT(out, ",\"period (us)\":"), record_arg(r, SAMPLE_PERIOD));
    if (r->weight > 1)
        out = PUT_FIELD(out, "weight", r->weight);
    if (flags & SAMPLE_IN_KERNEL)
        out = PUT(out, ",\"in kernel\":true");
    if (is_gap)
        out = put_looked(w, out, r, holder);
    if (stack)
        out = chrome_put_stack(w, out, "stack", stack, SAMPLE_STACK_BYTES);
    out = chrome_end_arguments(w, out, 0);
    if (stack)
        out = json_decimal(PUT(out, ",\"sf\":"), w->frame_numbers[stack - 1]);
    *out++ = '}';
    output_advance(w->out, out);
    chrome_reach(w, e->process, at_ns, at_ns);
    return 0;
}

int chrome_host(struct trace_writer *w, const struct slice *s)
{
    if (s->event.record->type != RECORD_SAMPLE)
        return put_slice(w, s);
    return w->scope.has_own_samples && s->event.record->code == SAMPLE_CPU ? 0 : put_sample(w, s);
}
