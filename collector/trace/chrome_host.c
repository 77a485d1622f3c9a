/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the host did and said. Steps, marks, pauses, windows and dumps. Host
 * activities (run --sample, --gaps, --os): waits in the C library, waits for Python's interpreter
 * lock and garbage collections are slices of their threads; samples are instants with a stack. The
 * lock's holder has a row of the process, since holds exclude each other but cross ranges and
 * operators. A slice that would cross another goes to a row beside its thread.
 */
#include "flight.h"
#include "resolve/device_sources.h"
#include "resolve/host_facts.h"
#include "trace/chrome.h"

#define SAMPLE_STACK_BYTES 512 /* short, as there are many; stackFrames has all of each */
#define TEXT_BYTES_MAX     (6 * RECORD_BYTES_MAX + 2)

_Static_assert(THREAD_NAME_BYTES_MAX + 24 < GPU_TITLE_BYTES, "a thread is a title");

_Static_assert(CHROME_EVENT_BYTES + 2 * TEXT_BYTES_MAX + CHROME_STACK_BYTES < OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

/* ---- steps ----------------------------------------------------------------------------------- */

/* Avoids a profiler's own step names: the trace has those steps already, and readers would count
 * them twice. */
static void put_step(struct trace_writer *w, struct process *p, uint64_t number, uint64_t begin_ns,
                     uint64_t end_ns, const char *made_of)
{
    struct shown at = {.begin_ns = begin_ns, .end_ns = end_ns};
    char name[64];
    bool is_again = w->scope.steps && w->scope.steps->kind == STEPS_PROFILER;
    chrome_place(w, p, ROW_STEP, 0, 0, FREE_LANE, 0, &at);
    snprintf(name, sizeof name, is_again ? "step %llu" : STEP_NAME "%llu",
             (unsigned long long)number);
    char *out = chrome_begin_slice(w, is_again ? "step" : "user_annotation", NULL, name, &at,
                                   RANGE_TEXT_BYTES);
    out = json_escape(PUT(out, ",\"made of\":"), made_of, strlen(made_of));
    chrome_end_slice(w, out, 0);
    chrome_reach_into(w, p, &at);
    chrome_span(w, p)->steps++;
}

static void put_steps(struct trace_writer *w, struct process *p)
{
    const struct steps *steps = w->scope.steps;
    uint32_t end = steps->firsts[p->index + 1];
    for (uint32_t i = steps->firsts[p->index]; i < end; i++) {
        const struct step *step = &steps->list[i];
        /* Then the end is 1 ns earlier: some viewers join steps that touch. */
        bool touches = i + 1 < end && step[1].begin_ns == step->end_ns;
        if (step->end_ns > step->begin_ns &&
            selection_reaches(w->scope.selection, p, step->begin_ns, step->end_ns))
            put_step(w, p, step->number, chrome_time(w, step->begin_ns),
                     chrome_time(w, step->end_ns) - touches, step_made_of(steps, step));
    }
}

void chrome_steps_end(struct trace_writer *w)
{
    for (uint32_t i = 0; i < w->shown.count; i++) {
        const struct process_span *span = &w->shown.spans[i];
        struct process *p = w->shown.list[i];
        if (w->scope.steps)
            put_steps(w, p);
        /* Kineto's readers need a step: without any, the whole trace is one. */
        if (w->scope.survey && p->has_gpu && !span->steps && span->begin_ns != UINT64_MAX)
            put_step(w, p, 0, span->begin_ns, span->end_ns,
                     w->scope.selection ? "the whole piece" : "the whole recording");
    }
}

/* ---- instants -------------------------------------------------------------------------------- */

/* Writes an instant of the thread for a mark (not NULL), else of the process. */
static void put_instant(struct trace_writer *w, const struct event *e, const char *name,
                        const struct host_span *mark)
{
    uint64_t at_ns = chrome_time(w, e->begin_ns);
    char *out = chrome_begin_instant(
        w, mark ? "t\",\"cat\":\"user_annotation" : "p\",\"cat\":\"user_annotation",
        mark ? mark->text : NULL, name, &chrome_row(w, e->thread->index)->ids, at_ns,
        2 * RANGE_TEXT_BYTES);
    if (mark)
        out = chrome_put_attributes(w, out, mark);
    chrome_end_slice(w, out, 0);
    chrome_reach(w, e->process, at_ns, at_ns);
}

/* Writes what run --device could not read, or stopped reading. */
static void take_unread(struct trace_writer *w, const struct event *e)
{
    const struct device_source *source = device_sources_find(&w->walk->sources, e);
    char device[DEVICE_UUID_BYTES] = "the devices", text[RECORD_BYTES_MAX + 96];
    if (source && source->device != UINT64_MAX)
        snprintf(device, sizeof device, "GPU %llu", (unsigned long long)source->device);
    else if (source)
        device_source_uuid_text(source, device);
    snprintf(text, sizeof text, "no counters of %s: %.*s", device, (int)e->record->byte_count,
             e->record->bytes ? (const char *)e->record->bytes : "");
    put_instant(w, e, text, NULL);
}

void chrome_mark(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned long long number;
    char name[128] = "";
    if (s->change == SPAN_MARKED) {
        put_instant(w, e, "mark", s->span);
    } else if (r->type == RECORD_DUMP) {
        const char *why = dump_reason_text(record_arg(r, DUMP_REASON));
        number = record_arg(r, DUMP_NUMBER);
        snprintf(name, sizeof name, "dump %llu: %s", number, why ? why : "?");
    } else if (r->type == RECORD_DEVICE_ABSENT && device_missing_of_all(r)) {
        take_unread(w, e);
    } else if (r->type == RECORD_PAUSE) {
        snprintf(name, sizeof name, "recording %s",
                 record_arg(r, PAUSE_PAUSED) ? "stopped" : "started");
    } else if (r->type == RECORD_WINDOW && s->pause_change) {
        number = record_arg(r, WINDOW_NUMBER);
        if (number)
            snprintf(name, sizeof name, "window %llu %s", number,
                     s->pause_change == PAUSE_ENDS ? "begins" : "has ended");
    }
    if (*name)
        put_instant(w, e, name, NULL);
}

/* ---- activities ------------------------------------------------------------------------------ */

/* Finds the row and the times shown there. */
static void place_beside(struct trace_writer *w, const struct slice *s, bool is_hold,
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
    } else {
        chrome_place(w, e->process, is_hold ? ROW_GIL : ROW_HOST, 0,
                     is_hold || t->own ? 0 : t->index + 1ull, FREE_LANE, t->index, at);
    }
    chrome_reach(w, e->process, at->begin_ns, at->end_ns);
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

static void put_activity(struct trace_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct thread *t = s->event.thread;
    bool is_hold = r->type == RECORD_GIL && r->code == GIL_HELD;
    char text[GPU_TITLE_BYTES];
    const char *title =
        r->type == RECORD_OS_CALL ? host_os_name(&s->event, text) : record_title(r, text);
    struct shown at;
    uint32_t stack = chrome_stack(w, s->event.process, r->stack_id, walk_range(s));
    place_beside(w, s, is_hold, &at);
    if (is_hold) {
        snprintf(text, sizeof text, "%s (tid %u)", t->name[0] ? t->name : "thread", t->tid);
        title = text;
    }
    char *out =
        chrome_begin_slice(w, select_kind_word(selection_kind_of(r, NULL)), NULL, title, &at,
                           json_escape_bytes_max(r->byte_count) + (stack ? CHROME_STACK_BYTES : 0));
    chrome_end_slice(w, put_facts(out, r), stack);
}

/* ---- samples --------------------------------------------------------------------------------- */

static char *put_sample_arguments(struct trace_writer *w, char *out,
                                  const struct host_sample *sample, uint32_t stack, uint32_t holder)
{
    out = json_microseconds(PUT(out, ",\"time (us)\":"), sample->ns);
    if (sample->count > 1)
        out = PUT_FIELD(out, "periods", sample->count);
    if (sample->in_kernel)
        out = PUT(out, ",\"in kernel\":true");
    if (!sample->is_cpu) { /* seen from outside the thread */
        out = PUT_FIELD(out, "tid", sample->tid);
        if (sample->state >= 'A' && sample->state <= 'z' && sample->state != '\\')
            out = PUT(mempcpy(PUT(out, ",\"state\":\""), &sample->state, 1), "\"");
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
    const struct host_span *range = walk_range(s);
    const char *name = sample->in_gpuprof  ? "in gpuprof"
                       : sample->is_torn   ? "torn stack"
                       : sample->is_silent ? "signal blocked"
                                           : "no stack";
    uint64_t at_ns = chrome_time(w, sample->at_ns);
    uint32_t stack = chrome_stack(w, e->process, sample->stack, range);
    uint32_t holder = chrome_stack(w, e->process, sample->holder_stack, range);
    if (stack)
        name = call_tree_frame(w->scope.tree, stack)->label;
    char *out = chrome_begin_instant(
        w, sample->is_cpu ? "t\",\"cat\":\"cpu_sample" : "t\",\"cat\":\"gap_sample", NULL, name,
        &chrome_row(w, thread->index)->ids, at_ns, 2 * SAMPLE_STACK_BYTES);
    out = put_sample_arguments(w, out, sample, stack, holder);
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
        put_activity(w, s);
    else if (!w->scope.for_perfetto || !sample.is_cpu)
        put_sample(w, s, &sample);
}
