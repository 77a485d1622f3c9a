/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges, marks and steps as rows of a Chrome trace. A nested range is a slice of its thread,
 * written when it ends, but with a begin that no slice inside it has; so the order in the file does
 * not matter. Its projection on a stream is the time from the first work launched inside it to the
 * end of the last; it needs the state of one stack per stream, however many ranges there are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "flight.h"
#include "model/device_sources.h"
#include "model/nccl_call.h"
#include "record/argument_text.h"
#include "record/gpu_record.h"
#include "trace/chrome.h"

#define STEP_NAME        "ProfilerStep#"
#define RANGE_TEXT_BYTES (6 * RECORD_BYTES_MAX + 2)
#define RANGE_TEXTS      3 /* texts in one event */
#define UNNAMED          "\"range\""

_Static_assert(CHROME_EVENT_BYTES + RANGE_TEXTS * RANGE_TEXT_BYTES < OUTPUT_BUFFER_BYTES,
               "a range fits into the buffer");

/* What NCCL says of a call. */
static char *put_nccl(char *out, const struct nccl_call *call)
{
    static const char *const names[NCCL_NUMBERS] = {"reduction", "root", "peer",
                                                    "ranks",     "rank", "device"};
    out = json_hex(PUT(out, ",\"communicator\":\""), call->communicator);
    *out++ = '"';
    if (call->has_bytes)
        out = json_number(PUT(out, ",\"bytes\":"), call->bytes);
    for (unsigned i = 0; i < NCCL_NUMBERS; i++) {
        const char *text = i == NCCL_REDUCTION ? nccl_reduction_text(call->numbers[i]) : NULL;
        if (!(call->has & 1u << i))
            continue;
        out += sprintf(out, ",\"%s\":", names[i]);
        out += text ? sprintf(out, "\"%s\"", text) : sprintf(out, "%d", call->numbers[i]);
    }
    return out;
}

/* A payload of NVTX's extension: what it says, or the words that are known of it. */
static char *put_data(char *out, const struct range *range)
{
    struct nccl_call call;
    if (nccl_call_of(range, &call))
        return put_nccl(out, &call);
    out = json_number(PUT(out, ",\"payload schema\":"), range->schema);
    out = json_number(PUT(out, ",\"payload bytes\":"), range->data_bytes);
    out = PUT(out, ",\"payload words\":[");
    for (unsigned i = 0; i < RANGE_DATA_WORDS && 8ull * i < range->data_bytes; i++) {
        out = json_hex(i ? PUT(out, ",\"") : PUT(out, "\""), range->data[i]);
        *out++ = '"';
    }
    return PUT(out, "]");
}

/* The attributes of a range or mark; each begins with a comma. */
static char *put_attributes(struct trace_writer *w, char *out, const struct range *range)
{
    const struct kernel_name *text;
    if (range->domain) {
        text = range->domain_text;
        out = PUT(out, ",\"domain\":");
        out =
            text ? chrome_put(out, text->json, text->json_bytes) : json_number(out, range->domain);
    }
    if (range->category) {
        out = PUT(out, ",\"category\":");
        text = ranges_label(&w->walk->ranges, range->process, LABEL_OF_CATEGORY, range->domain,
                            range->category);
        out = text ? chrome_put(out, text->json, text->json_bytes)
                   : json_number(out, range->category);
    }
    if (range->color) {
        out = json_hex(PUT(out, ",\"color\":\""), range->color);
        *out++ = '"';
    }
    if (range->payload_type)
        out = payload_json(range->payload_type, range->payload, PUT(out, ",\"payload\":"));
    if (range->schema)
        out = put_data(out, range);
    return out;
}

/* Up to the members behind its number; its begin and end are as they are shown. */
static char *begin_range(struct trace_writer *w, const char *category,
                         const struct kernel_name *text, uint64_t sequence,
                         const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns)
{
    size_t bytes = text ? text->json_bytes : sizeof UNNAMED - 1;
    char *out =
        output_room(w->out, CHROME_EVENT_BYTES + bytes + (RANGE_TEXTS - 1) * RANGE_TEXT_BYTES);
    out = chrome_begin_slice(w, out, category, text ? text->json : UNNAMED, bytes, row, begin_ns,
                             end_ns);
    return json_decimal(PUT(out, ",\"External id\":"), sequence);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* A profiler's own steps are in the trace already: readers would count them twice, had these the
 * same names. */
static int put_step(struct trace_writer *w, struct process *p, uint64_t number, uint64_t begin_ns,
                    uint64_t end_ns, const char *made_of)
{
    char name[64];
    bool is_again = w->scope.steps && w->scope.steps->kind == STEPS_PROFILER;
    struct gpu_row *row = gpu_rows_get(&w->gpu_rows, p, ROW_STEP, 0, 0, begin_ns);
    if (!row)
        return GPUPROF_NO_MEMORY;
    int error = row->named ? 0 : chrome_name_row(w, row);
    gpu_row_fit(row, &begin_ns, &end_ns);
    int length = snprintf(name, sizeof name, is_again ? "\"step %llu\"" : "\"" STEP_NAME "%llu\"",
                          (unsigned long long)number);
    char *out = output_room(w->out, CHROME_EVENT_BYTES + RANGE_TEXT_BYTES);
    out = chrome_begin_slice(w, out, is_again ? "step" : "user_annotation", name, (size_t)length,
                             &row->row, begin_ns, end_ns);
    out = json_escape(PUT(out, ",\"made of\":"), made_of, strlen(made_of));
    chrome_end_slice(w, out, 0);
    chrome_reach_into(w, p, begin_ns, end_ns);
    chrome_span(w, p)->steps++;
    return error;
}

/* gpuprof_step(): a step lasts until the next, or until none is recorded any more. */
static int take_step(struct trace_writer *w, const struct event *e)
{
    struct process_span *span = chrome_span(w, e->process);
    uint64_t now_ns = chrome_time(w, e->begin_ns);
    int error = 0;
    if (w->scope.steps)
        return 0;
    /* The end is 1 ns before: steps that touch are taken for one by some viewers. */
    if (span->stepping && now_ns > span->step_begin_ns)
        error =
            put_step(w, e->process, span->step, span->step_begin_ns, now_ns - 1, "gpuprof_step");
    span->stepping = e->record->type == RECORD_STEP;
    span->step = record_arg(e->record, STEP_NUMBER);
    span->step_begin_ns = now_ns;
    return error;
}

/* Steps of other kinds: all are known before. */
static int put_known_steps(struct trace_writer *w, struct process *p)
{
    const struct steps *steps = w->scope.steps;
    uint32_t end = steps->firsts[p->index + 1];
    int error = 0;
    for (uint32_t i = steps->firsts[p->index]; error == 0 && i < end; i++) {
        const struct step *step = &steps->list[i];
        bool touches = i + 1 < end && step[1].begin_ns == step->end_ns; /* as in take_step */
        if (step->end_ns > step->begin_ns &&
            selection_reaches(w->scope.selection, p, step->begin_ns, step->end_ns))
            error = put_step(w, p, step->number, chrome_time(w, step->begin_ns),
                             chrome_time(w, step->end_ns) - touches,
                             step->made_of                 ? step->made_of->shown
                             : steps->kind == STEPS_CALLED ? "gpuprof_step"
                                                           : "launches of a graph");
    }
    return error;
}

/* ---- ranges of threads ----------------------------------------------------------------------- */

#define COLOR_NAME_BYTES 32 /* more than any has */
#define COLOR_NAME(name, red, green, blue)                                                         \
    _Static_assert(sizeof #name <= COLOR_NAME_BYTES, "a name is short");
#include "trace/color_names.def"
#undef COLOR_NAME

#define COLOR_NAME(name, red, green, blue) {#name, {red, green, blue}},
static const struct {
    const char *name;
    int parts[3];
} colors[] = {
#include "trace/color_names.def"
};
#undef COLOR_NAME

/* The eye tells greens apart better than reds, and these better than blues. */
static int distance(const int *a, const int *b)
{
    static const int weights[] = {3, 4, 2};
    int sum = 0;
    for (int i = 0; i < 3; i++)
        sum += weights[i] * (a[i] - b[i]) * (a[i] - b[i]);
    return sum;
}

/* Viewers take no colours, but the names of some: that which looks most like 0xAARRGGBB. */
static const char *color_name(uint32_t color)
{
    const int parts[] = {(int)(color >> 16 & 0xff), (int)(color >> 8 & 0xff), (int)(color & 0xff)};
    size_t nearest = 0;
    for (size_t i = 1; i < sizeof colors / sizeof colors[0]; i++)
        if (distance(colors[i].parts, parts) < distance(colors[nearest].parts, parts))
            nearest = i;
    return colors[nearest].name;
}

/* Its begin and end are as they are shown, and so is the place. */
static void put_range(struct trace_writer *w, const struct range *range,
                      const struct trace_row *row, bool ended)
{
    char *out = begin_range(w, "user_annotation", range->text, range->sequence, row,
                            range->begin_ns, range->end_ns);
    out = put_attributes(w, out, range);
    if (!ended)
        out = PUT(out, ",\"open\":true");
    out = chrome_end_arguments(w, out, 0);
    if (range->color)
        out += sprintf(out, ",\"cname\":\"%s\"", color_name((uint32_t)range->color));
    *out++ = '}';
    output_advance(w->out, out);
    /*
     * What the operator view of TensorBoard needs to tie kernels to something. Not in a trace of a
     * whole job, which it does not read: viewers would show each range twice.
     */
    if (!w->scope.only || !range->used || !range->nested)
        return;
    out =
        begin_range(w, "cpu_op", range->text, range->sequence, row, range->begin_ns, range->end_ns);
    chrome_end_slice(w, out, 0);
}

static bool is_innermost(struct trace_writer *w, const struct range *closed)
{
    /* Free ranges have no place in the thread's row; deeper nested ones have a later one. */
    const struct range_stack *stack = ranges_stack(&w->walk->ranges, closed->thread->index);
    for (uint32_t i = 0; i < stack->count; i++)
        if (stack->open[i].nested && stack->open[i].sequence > closed->sequence)
            return false;
    return ops_was_innermost(&w->walk->ops, closed->thread, closed->sequence);
}

struct trace_row *chrome_close_nested(struct trace_writer *w, struct process *p,
                                      struct trace_row *row, bool was_innermost, uint64_t moved_ns,
                                      uint64_t *begin_ns, uint64_t *end_ns)
{
    uint64_t fitted_ns = *end_ns = chrome_time(w, *end_ns);
    *begin_ns = chrome_time(w, *begin_ns);
    if (row && was_innermost && trace_row_close(row, &fitted_ns)) {
        *begin_ns += moved_ns;
        *end_ns = fitted_ns > *begin_ns ? fitted_ns : *begin_ns;
    } else {
        if (row)
            trace_row_forget(row);
        struct gpu_row *beside = gpu_rows_get(&w->gpu_rows, p, ROW_RANGE, 0, 0, *begin_ns);
        if (!beside || (!beside->named && chrome_name_row(w, beside) < 0))
            return NULL;
        gpu_row_fit(beside, begin_ns, end_ns);
        row = &beside->row;
    }
    chrome_reach_into(w, p, *begin_ns, *end_ns);
    return row;
}

static int close_range(struct trace_writer *w, const struct range *closed, bool ended)
{
    struct range range = *closed;
    const struct trace_row *row = chrome_close_nested(
        w, range.process, range.nested ? chrome_row(w, range.thread->index) : NULL,
        range.nested && is_innermost(w, closed), range.row, &range.begin_ns, &range.end_ns);
    if (!row)
        return GPUPROF_NO_MEMORY;
    put_range(w, &range, row, ended);
    return 0;
}

static void put_instant(struct trace_writer *w, const struct event *e, const char *name,
                        size_t name_bytes, const struct range *mark)
{
    const struct trace_row *row = chrome_row(w, e->thread->index);
    uint64_t at_ns = chrome_time(w, e->begin_ns);
    char *out = output_room(w->out, CHROME_EVENT_BYTES + name_bytes + 2 * RANGE_TEXT_BYTES);
    out = PUT(out, ",\n{\"ph\":\"i\",\"s\":\"");
    *out++ = mark ? 't' : 'p';
    out = chrome_put(PUT(out, "\",\"cat\":\"user_annotation\",\"name\":"), name, name_bytes);
    out = json_microseconds(chrome_put_ids(PUT(out, ",\"pid\":"), row), at_ns);
    w->arguments = out = PUT(out, ",\"args\":");
    if (mark)
        out = put_attributes(w, out, mark);
    chrome_end_slice(w, out, 0);
    chrome_reach(w, e->process, at_ns, at_ns);
}

static int take_label(struct trace_writer *w, const struct event *e)
{
    const struct record *r = e->record;
    struct process *p = e->process;
    if (record_arg(r, LABEL_KIND) != LABEL_OF_THREAD)
        return 0;
    const struct kernel_name *text =
        ranges_label(&w->walk->ranges, p, LABEL_OF_THREAD, record_arg(r, LABEL_DOMAIN),
                     record_arg(r, LABEL_HANDLE));
    for (uint32_t i = 0; text && i < p->threads.count; i++) {
        const struct thread *t = p->threads.threads[i];
        if (t->number && t->tid && t->tid == record_arg(r, LABEL_HANDLE))
            return chrome_name_thread(w, p, t->shown_tid, text->shown);
    }
    return 0;
}

static int take_window(struct trace_writer *w, const struct slice *s)
{
    char name[64];
    unsigned long long number = record_arg(s->event.record, WINDOW_NUMBER);
    if (!s->pause_change || !number)
        return 0;
    int length = snprintf(name, sizeof name, "\"window %llu %s\"", number,
                          s->pause_change == PAUSE_ENDS ? "begins" : "has ended");
    put_instant(w, &s->event, name, (size_t)length, NULL);
    return s->pause_change == PAUSE_BEGINS ? take_step(w, &s->event) : 0;
}

static int take_dump(struct trace_writer *w, const struct event *e)
{
    char name[128];
    const char *why = dump_reason_text(record_arg(e->record, DUMP_REASON));
    int length = snprintf(name, sizeof name, "\"dump %llu: %s\"",
                          (unsigned long long)record_arg(e->record, DUMP_NUMBER), why ? why : "?");
    put_instant(w, e, name, (size_t)length, NULL);
    return 0;
}

/* What run --device did not read as a whole, or no more. */
static int take_unread(struct trace_writer *w, const struct event *e)
{
    const struct device_source *source = device_sources_find(&w->walk->sources, e);
    char device[DEVICE_UUID_BYTES] = "the devices", *text = NULL;
    if (source && source->device != UINT64_MAX)
        snprintf(device, sizeof device, "GPU %llu", (unsigned long long)source->device);
    else if (source)
        device_source_uuid_text(source, device);
    int length = asprintf(&text, "no counters of %s: %.*s", device, (int)e->record->byte_count,
                          e->record->bytes ? (const char *)e->record->bytes : "");
    char *name = length < 0 ? NULL : json_string(text, strlen(text));
    if (name)
        put_instant(w, e, name, strlen(name), NULL);
    free(text);
    int error = name ? 0 : GPUPROF_NO_MEMORY;
    free(name);
    return error;
}

int chrome_range(struct trace_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    struct range *range = s->range;
    switch (s->change) {
    case RANGE_OPENED:
        range->row = range->nested ? chrome_open_nested(w, range->thread, range->begin_ns) : 0;
        return 0;
    case RANGE_CLOSED: return close_range(w, range, true);
    case RANGE_LEFT: return close_range(w, range, false);
    case RANGE_MARKED:
        put_instant(w, e, range->text ? range->text->json : "\"mark\"",
                    range->text ? range->text->json_bytes : 6, range);
        return 0;
    default: break;
    }
    if (e->record->type == RECORD_LABEL)
        return take_label(w, e);
    if (e->record->type == RECORD_STEP)
        return take_step(w, e);
    if (e->record->type == RECORD_DUMP)
        return take_dump(w, e);
    if (e->record->type == RECORD_DEVICE_ABSENT && device_absent_of_all(e->record))
        return take_unread(w, e);
    if (e->record->type == RECORD_PAUSE && record_arg(e->record, PAUSE_PAUSED))
        put_instant(w, e, "\"recording stopped\"", 19, NULL);
    else if (e->record->type == RECORD_PAUSE)
        put_instant(w, e, "\"recording started\"", 19, NULL);
    return e->record->type == RECORD_WINDOW ? take_window(w, s) : 0;
}

/* ---- projection on streams ------------------------------------------------------------------- */

int chrome_projected(void *context, const struct projection *p, const struct projected_range *range)
{
    struct trace_writer *w = context;
    struct gpu_row *row =
        gpu_rows_lane(&w->gpu_rows, p->process, ROW_ANNOTATION, p->device, p->stream, p->lane);
    if (!row)
        return GPUPROF_NO_MEMORY;
    row->thread = p->thread;
    const struct kernel_name *text = range->text;
    if (!text && range->name)
        text = kernel_name_of(&w->walk->names[p->process->index].ops.names, range->name);
    /* Kineto's readers take a step on a device for work. */
    if (text && strncmp(text->shown, STEP_NAME, sizeof STEP_NAME - 1) == 0)
        return 0;
    int error = row->named ? 0 : chrome_name_row(w, row);
    char *out = begin_range(w, "gpu_user_annotation", text, range->sequence, &row->row,
                            range->begin_ns, range->end_ns);
    chrome_end_slice(w, out, 0);
    return error;
}

int chrome_ranges_end(struct trace_writer *w)
{
    int error = projections_end(&w->projections);
    for (uint32_t i = 0; error == 0 && i < w->process_count; i++) {
        struct process_span *span = &w->spans[i];
        struct process *p = w->processes[i];
        if (w->scope.steps && (error = put_known_steps(w, p)) < 0)
            return error;
        if (span->stepping)
            error =
                put_step(w, p, span->step, span->step_begin_ns,
                         span->end_ns > span->step_begin_ns ? span->end_ns : span->step_begin_ns,
                         "gpuprof_step");
        /* Kineto's readers cannot do without a step: then all of it is one. */
        else if (w->scope.survey && p->has_gpu && !span->steps && span->begin_ns != UINT64_MAX)
            error = put_step(w, p, 0, span->begin_ns, span->end_ns,
                             w->scope.selection ? "the whole piece" : "the whole recording");
    }
    return error;
}
