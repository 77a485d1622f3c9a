/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did (run --sample, --gaps, --os): calls of the C library that waited, waits for
 * Python's interpreter lock and garbage collections as slices of their threads, samples as instants
 * with their stack. Who holds the lock is a row of the process: holds cross ranges and operators,
 * and exclude each other. A slice that would cross another of its thread stands on a row beside it.
 */
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "model/host_facts.h"
#include "trace/chrome.h"

#define SAMPLE_STACK_BYTES 512 /* there are many; stackFrames has all of each */
#define TEXT_BYTES_MAX     (6 * RECORD_BYTES_MAX + 2)

_Static_assert(THREAD_NAME_BYTES_MAX + 24 < GPU_TITLE_BYTES, "a thread is a title");

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
    char text[GPU_TITLE_BYTES], name[6 * OS_NAME_BYTES_MAX + 2];
    const char *title =
        r->type == RECORD_OS_CALL ? host_os_name(&s->event, text) : record_title(r, text);
    uint64_t begin_ns, end_ns;
    uint32_t stack;
    int error = stack_of(w, s, r->stack_id, &stack);
    const struct trace_row *row = error < 0 ? NULL : place(w, s, is_hold, &begin_ns, &end_ns);
    if (!row)
        return error < 0 ? error : GPUPROF_NO_MEMORY;
    if (is_hold) {
        const struct thread *t = s->event.thread;
        snprintf(text, sizeof text, "%s (tid %u)", t->name[0] ? t->name : "thread", t->tid);
        title = text;
    }
    size_t bytes = (size_t)(json_escape(name, title, strlen(title)) - name);
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

/* What a thread was seen doing from outside. */
static char *put_looked(struct trace_writer *w, char *out, const struct host_sample *sample,
                        uint32_t holder)
{
    out = PUT_FIELD(out, "tid", sample->tid);
    if (sample->state >= 'A' && sample->state <= 'z' && sample->state != '\\') {
        out = PUT(out, ",\"state\":\"");
        *out++ = sample->state;
        *out++ = '"';
    }
    if (sample->syscall >= 0)
        out = PUT_FIELD(out, "system call", (uint64_t)sample->syscall);
    if (sample->holder)
        out = PUT_FIELD(out, "GIL held by tid", sample->holder);
    return holder ? chrome_put_stack(w, out, "holder", holder, SAMPLE_STACK_BYTES) : out;
}

static char *put_arguments(struct trace_writer *w, char *out, const struct host_sample *sample,
                           uint32_t stack, uint32_t holder)
{
    w->arguments = out = PUT(out, ",\"args\":");
    out = json_microseconds(PUT(out, ",\"time (us)\":"), sample->ns);
    if (sample->count > 1)
        out = PUT_FIELD(out, "periods", sample->count);
    if (sample->in_kernel)
        out = PUT(out, ",\"in kernel\":true");
    if (!sample->is_cpu)
        out = put_looked(w, out, sample, holder);
    if (stack)
        out = chrome_put_stack(w, out, "stack", stack, SAMPLE_STACK_BYTES);
    return chrome_end_arguments(w, out, 0);
}

static int put_sample(struct trace_writer *w, const struct slice *s,
                      const struct host_sample *sample)
{
    const struct event *e = &s->event;
    const struct thread *thread = sample->thread ? sample->thread : e->thread;
    const char *name = sample->in_gpuprof  ? "\"in gpuprof\""
                       : sample->is_torn   ? "\"torn stack\""
                       : sample->is_silent ? "\"signal blocked\""
                                           : "\"no stack\"";
    size_t bytes = strlen(name);
    uint64_t at_ns = chrome_time(w, sample->at_ns);
    uint32_t stack, holder;
    int error = stack_of(w, s, sample->stack, &stack);
    if (error == 0)
        error = stack_of(w, s, sample->holder_stack, &holder);
    if (error < 0)
        return error;
    if (stack) {
        const struct shown_frame *frame = call_tree_frame(w->scope.tree, stack);
        name = frame->json;
        bytes = frame->json_bytes;
    }
    char *out = output_room(w->out, CHROME_EVENT_BYTES + bytes + 2 * SAMPLE_STACK_BYTES);
    out = PUT(out, ",\n{\"ph\":\"i\",\"s\":\"t\",\"cat\":\"");
    out = sample->is_cpu ? PUT(out, "cpu_sample") : PUT(out, "gap_sample");
    out = chrome_put(PUT(out, "\",\"name\":"), name, bytes);
    out = chrome_put_ids(PUT(out, ",\"pid\":"), chrome_row(w, thread->index));
    out = put_arguments(w, json_microseconds(out, at_ns), sample, stack, holder);
    if (stack)
        out = json_decimal(PUT(out, ",\"sf\":"), w->frame_numbers[stack - 1]);
    *out++ = '}';
    output_advance(w->out, out);
    chrome_reach(w, e->process, at_ns, at_ns);
    return 0;
}

int chrome_host(struct trace_writer *w, const struct slice *s)
{
    struct host_sample sample;
    if (!host_sample(s, &sample))
        return put_slice(w, s);
    return w->scope.has_own_samples && sample.is_cpu ? 0 : put_sample(w, s, &sample);
}
