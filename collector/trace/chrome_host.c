/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Host activities (run --sample, --gaps, --os). Waits in the C library, waits for Python's
 * interpreter lock and garbage collections are slices of their threads; samples are instants with a
 * stack. The lock's holder has a row of the process, since holds exclude each other but cross
 * ranges and operators. A slice that would cross another goes to a row beside its thread.
 */
#include "resolve/host_facts.h"
#include "trace/chrome.h"

#define SAMPLE_STACK_BYTES 512 /* short, as there are many; stackFrames has all of each */
#define TEXT_BYTES_MAX     (6 * RECORD_BYTES_MAX + 2)

_Static_assert(THREAD_NAME_BYTES_MAX + 24 < GPU_TITLE_BYTES, "a thread is a title");

_Static_assert(CHROME_EVENT_BYTES + 2 * TEXT_BYTES_MAX + CHROME_STACK_BYTES < OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

/* ---- slices ---------------------------------------------------------------------------------- */

/* Finds the row and the times shown there. Returns false without memory. */
static bool chrome_host_place(struct trace_writer *w, const struct slice *s, bool is_hold,
                              struct shown *at)
{
    const struct event *e = &s->event;
    const struct thread *t = e->thread;
    struct trace_row *row = chrome_row(w, t->index);
    at->begin_ns = chrome_time(w, e->begin_ns);
    at->end_ns = chrome_time(w, e->end_ns);
    if (!is_hold && !t->own && trace_row_holds(row, at->begin_ns, at->end_ns)) {
        trace_row_fit(row, &at->begin_ns, &at->end_ns);
        at->row = row;
    } else if (!chrome_place(w, e->process, is_hold ? ROW_GIL : ROW_HOST, 0,
                             is_hold || t->own ? 0 : t->index + 1ull, FREE_LANE, t->index, at)) {
        return false;
    }
    chrome_reach(w, e->process, at->begin_ns, at->end_ns);
    return true;
}

static char *put_facts(char *out, const struct record *r)
{
    uint64_t fd = record_arg(r, OS_CALL_FD), object = record_arg(r, OS_CALL_OBJECT);
    uint64_t bytes = record_arg(r, OS_CALL_BYTES), error = record_arg(r, OS_CALL_ERROR);
    switch (r->type) {
    case RECORD_OS_CALL:
        if (fd)
            out = PUT_FIELD(out, "fd", fd - 1);
        if (r->byte_count)
            out = json_escape(PUT(out, ",\"file\":"), (const char *)r->bytes, r->byte_count);
        if (object)
            out = PUT(json_hex(PUT(out, ",\"object\":\""), object), "\"");
        out = PUT_SOME(out, "bytes", bytes);
        if (r->result)
            out = json_signed(PUT(out, ",\"result\":"), (uint32_t)r->result);
        return PUT_SOME(out, "errno", error);
    case RECORD_GIL:
        out = PUT_SOME(out, "held before by tid", record_arg(r, GIL_OTHER));
        return PUT_SOME(out, "asked again", record_arg(r, GIL_SWITCHES));
    default:
        out = PUT_FIELD(out, "generation", r->code);
        out = PUT_FIELD(out, "collected", record_arg(r, GC_COLLECTED));
        return PUT_FIELD(out, "uncollectable", record_arg(r, GC_UNCOLLECTABLE));
    }
}

static void put_slice(struct trace_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct thread *t = s->event.thread;
    bool is_hold = r->type == RECORD_GIL && r->code == GIL_HELD;
    const char *category = r->type == RECORD_OS_CALL ? "os" : r->type == RECORD_GIL ? "gil" : "gc";
    char text[GPU_TITLE_BYTES];
    const char *title =
        r->type == RECORD_OS_CALL ? host_os_name(&s->event, text) : record_title(r, text);
    struct shown at;
    uint32_t stack = chrome_stack(w, s->event.process, r->stack_id, walk_range(s, false));
    if (w->error || !chrome_host_place(w, s, is_hold, &at))
        return;
    if (is_hold) {
        snprintf(text, sizeof text, "%s (tid %u)", t->name[0] ? t->name : "thread", t->tid);
        title = text;
    }
    char *out =
        chrome_begin_slice(w, category, NULL, title, &at,
                           json_escape_bytes_max(r->byte_count) + (stack ? CHROME_STACK_BYTES : 0));
    chrome_end_slice(w, put_facts(out, r), stack);
}

/* ---- samples --------------------------------------------------------------------------------- */

static char *chrome_host_put_arguments(struct trace_writer *w, char *out,
                                       const struct host_sample *sample, uint32_t stack,
                                       uint32_t holder)
{
    out = json_microseconds(PUT(out, ",\"time (us)\":"), sample->ns);
    if (sample->count > 1)
        out = PUT_FIELD(out, "periods", sample->count);
    if (sample->in_kernel)
        out = PUT(out, ",\"in kernel\":true");
    if (!sample->is_cpu) { /* seen from outside the thread */
        out = PUT_FIELD(out, "tid", sample->tid);
        if (sample->state >= 'A' && sample->state <= 'z' && sample->state != '\\')
            out = PUT(chrome_put(PUT(out, ",\"state\":\""), &sample->state, 1), "\"");
        if (sample->syscall >= 0)
            out = PUT_FIELD(out, "system call", (uint64_t)sample->syscall);
        out = PUT_SOME(out, "GIL held by tid", sample->holder);
        if (holder)
            out = chrome_put_stack(w, out, "holder", holder, SAMPLE_STACK_BYTES);
    }
    if (stack)
        out = chrome_put_stack(w, out, "stack", stack, SAMPLE_STACK_BYTES);
    return chrome_end_arguments(w, out, 0);
}

static void put_sample(struct trace_writer *w, const struct slice *s,
                       const struct host_sample *sample)
{
    const struct event *e = &s->event;
    const struct thread *thread = sample->thread ? sample->thread : e->thread;
    const struct range *range = walk_range(s, false);
    const char *name = sample->in_gpuprof  ? "in gpuprof"
                       : sample->is_torn   ? "torn stack"
                       : sample->is_silent ? "signal blocked"
                                           : "no stack";
    uint64_t at_ns = chrome_time(w, sample->at_ns);
    uint32_t stack = chrome_stack(w, e->process, sample->stack, range);
    uint32_t holder = chrome_stack(w, e->process, sample->holder_stack, range);
    if (w->error)
        return;
    if (stack)
        name = call_tree_frame(w->scope.tree, stack)->label;
    char *out = chrome_begin_instant(
        w, sample->is_cpu ? "t\",\"cat\":\"cpu_sample" : "t\",\"cat\":\"gap_sample", NULL, name,
        &chrome_row(w, thread->index)->ids, at_ns, 2 * SAMPLE_STACK_BYTES);
    out = chrome_host_put_arguments(w, out, sample, stack, holder);
    if (stack)
        out = json_decimal(PUT(out, ",\"sf\":"), w->frames.numbers[stack - 1]);
    *out++ = '}';
    output_advance(w->out, out);
    chrome_reach(w, e->process, at_ns, at_ns);
}

void chrome_host(struct trace_writer *w, const struct slice *s)
{
    struct host_sample sample;
    if (!host_sample(s, &sample))
        put_slice(w, s);
    else if (!w->scope.has_own_samples || !sample.is_cpu)
        put_sample(w, s, &sample);
}
