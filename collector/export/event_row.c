/* SPDX-License-Identifier: Apache-2.0 */
/* Makes rows from the walk's slices. Kinds are the words of --kind. */
#include "export/event_row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api_error.h"
#include "argument_kind.h"
#include "base/json_text.h"
#include "error.h"
#include "export/export_writer.h"
#include "record/gpu_record.h"
#include "record/op_record.h"
#include "resolve/host_facts.h"

/* Writes a text that the walk owns; NULL writes nothing. */
static void put_kept(struct export_writer *w, enum event_column column,
                     const struct kernel_name *text)
{
    if (text)
        event_json(w, column, text->json, text->json_bytes);
}

static void add_state(struct export_writer *w, bool is_so, const char *word)
{
    size_t used = strlen(w->state);
    if (is_so)
        snprintf(w->state + used, sizeof w->state - used, "%s%s", used ? " " : "", word);
}

/* ---- arguments ------------------------------------------------------------------------------- */

/* Writes the member's name, which needs no escape, and returns room for `bytes` more. */
static char *begin_arg(struct export_writer *w, const char *label, size_t bytes)
{
    size_t length = strlen(label);
    char *out = packet_room(&w->args, length + 4 + bytes);
    out = mempcpy(out, w->args.used ? ",\"" : "{\"", 2);
    return mempcpy(mempcpy(out, label, length), "\":", 2);
}

static void end_arg(struct export_writer *w, const char *end)
{
    w->args.used = (size_t)(end - (char *)w->args.bytes);
}

void event_arg_number(struct export_writer *w, const char *label, unsigned kind, uint64_t value)
{
    end_arg(w, argument_json(kind, value, begin_arg(w, label, ARGUMENT_JSON_BYTES)));
}

void event_arg_text(struct export_writer *w, const char *label, const char *text)
{
    size_t length = strlen(text);
    end_arg(w, json_escape(begin_arg(w, label, json_escape_bytes_max(length)), text, length));
}

static void put_kept_arg(struct export_writer *w, const char *label, const struct kernel_name *text)
{
    if (text)
        end_arg(w, mempcpy(begin_arg(w, label, text->json_bytes), text->json, text->json_bytes));
}

/* Returns true if the argument stores the value + 1, and 0 for none. */
static bool is_one_more(unsigned type, unsigned index)
{
    return (type == RECORD_COPY && index >= COPY_SOURCE_DEVICE) ||
           (type == RECORD_MEMORY && index == MEMORY_POOL_BYTES);
}

void event_find_columns(struct export_writer *w)
{
    static const struct {
        const char *label;
        enum event_column column;
    } columns[] = {{"device", EVENT_DEVICE},
                   {"context", EVENT_CONTEXT},
                   {"stream", EVENT_STREAM},
                   {"bytes", EVENT_BYTES},
                   {"name", EVENT_NAME}};
    for (unsigned type = 0; type <= UINT8_MAX; type++) {
        const struct event_info *info = event_info(type);
        for (unsigned i = 0; info && i < info->arg_count; i++)
            for (unsigned c = 0; c < sizeof columns / sizeof columns[0]; c++)
                if (strcmp(info->args[i].label, columns[c].label) == 0)
                    w->columns[type][i] = columns[c].column;
    }
}

/* Writes an argument to its column. */
static void put_column(struct export_writer *w, enum event_column column, uint64_t value)
{
    if (column == EVENT_NAME || (column == EVENT_STREAM && value == GPU_STREAM_NONE))
        return;
    event_number(w, column, column == EVENT_STREAM && !value ? GPU_STREAM_DEFAULT : value);
}

/* Writes the record's arguments to their columns, others labelled as in events.def. A 0 that stands
 * for a name, a time or a size is left out. */
static void put_record_args(struct export_writer *w, const struct record *r)
{
    const struct event_info *info = event_info(r->type);
    for (unsigned i = 0; info && i < r->arg_count && i < info->arg_count; i++) {
        const struct event_arg *arg = &info->args[i];
        bool is_more = is_one_more(r->type, i);
        if (w->columns[r->type][i])
            put_column(w, w->columns[r->type][i], r->args[i]);
        else if (r->args[i] ||
                 !(is_more || arg->kind == ARG_ID || arg->kind == ARG_NS || arg->kind == ARG_DIM3))
            event_arg_number(w, arg->label, arg->kind, r->args[i] - is_more);
    }
}

static void put_function_args(struct export_writer *w, const struct slice *s,
                              const struct function *f, const uint64_t *args, unsigned count)
{
    struct shown_arg a;
    for (unsigned i = 0; i < count; i++) {
        if (!function_show(f, args, count, i, &a) || function_lacks_device(f, a.kind, a.value))
            continue;
        const struct kernel_name *name = a.kind == ARG_KERNEL ? walk_handle(s, a.value) : NULL;
        if (name)
            put_kept_arg(w, a.label, name);
        else
            event_arg_number(w, a.label, a.kind, a.value);
    }
}

/* ---- where it belongs ------------------------------------------------------------------------ */

static void event_row_put_step(struct export_writer *w, const struct process *p, uint64_t at_ns)
{
    const struct step *step = steps_at(w->scope.steps, p, at_ns);
    w->cells[EVENT_STEP] = (struct event_cell){0};
    if (step && at_ns < step->end_ns)
        event_number(w, EVENT_STEP, step->number);
}

/* Begins a row with a thread and the step in which it begins. */
static void begin_on(struct export_writer *w, enum select_kind kind, const struct process *p,
                     const struct thread *t, uint64_t begin_ns, uint64_t end_ns)
{
    event_begin(w, select_kind_word(kind), p, begin_ns, end_ns);
    event_number(w, EVENT_TID, t->shown_tid);
    event_row_put_step(w, p, begin_ns);
}

/* Writes what was open around a call. */
static void event_row_put_around(struct export_writer *w, const struct slice *s)
{
    const struct host_span *range = walk_range(s);
    const struct host_span *op = walk_op(s);
    const struct host_span *library = walk_library(s);
    put_kept(w, EVENT_RANGE, range ? range->text : NULL);
    put_kept(w, EVENT_OPERATOR, op ? op->text : NULL);
    put_kept(w, EVENT_LIBRARY, library ? library_kind_text(&w->walk->kinds, library->kind) : NULL);
}

/* Writes the launching call: its thread, its step, and what was open around it. */
static void put_call(struct export_writer *w, const struct slice *s)
{
    const struct correlated_call *call = &s->call;
    struct survey *survey = &w->walk->survey;
    event_number(w, EVENT_TID,
                 process_thread(w->walk->rec->processes[call->process], call->thread)->shown_tid);
    event_row_put_step(w, s->event.process, call->begin_ns);
    const struct span_node *range = survey_innermost(survey, call, SPAN_RANGE);
    put_kept(w, EVENT_RANGE, range ? range->text : NULL);
    const struct span_node *op = survey_op(survey, call);
    put_kept(w, EVENT_OPERATOR, op ? op->text : NULL);
    const struct span_node *library = survey_innermost(survey, call, SPAN_LIBRARY);
    put_kept(w, EVENT_LIBRARY, library ? library_kind_text(&w->walk->kinds, library->kind) : NULL);
}

/* ---- calls and work -------------------------------------------------------------------------- */

static void put_result(struct export_writer *w, const struct function *f, int32_t result)
{
    const char *name = result ? api_error_name(f->domain, result) : NULL;
    char number[16];
    snprintf(number, sizeof number, "%d", result);
    if (name)
        event_text(w, EVENT_ERROR, name);
    else if (result)
        event_json(w, EVENT_ERROR, number, strlen(number));
}

static void event_row_take_call(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct function *f = e->function;
    const struct record *r = e->record;
    uint64_t id = event_call_id(w->walk, e);
    begin_on(w, selection_kind_of_call(f), e->process, e->thread, e->begin_ns, e->end_ns);
    event_text(w, EVENT_NAME, f->name);
    event_number(w, EVENT_CALLS, r->weight > 1 ? r->weight : 1);
    if (f->bytes)
        event_number(w, EVENT_BYTES, function_bytes(f, r));
    if (!(r->flags & (RECORD_OPEN | RECORD_STALE)))
        put_result(w, f, r->result);
    add_state(w, r->flags & RECORD_CAPTURED, "captured");
    add_state(w, r->flags & RECORD_NESTED, "nested");
    add_state(w, r->flags & RECORD_STALE, "stale");
    add_state(w, r->flags & RECORD_OPEN, "open");
    if (id)
        event_number(w, EVENT_CORRELATION, id);
    event_row_put_around(w, s);
    put_function_args(w, s, f, r->args, r->arg_count);
}

/* Takes device work, a wait for it, CUDA's overhead or memory. */
static void event_row_take_work(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    unsigned type = r->type;
    const struct kernel_name *name =
        type == RECORD_KERNEL ? walk_kernel(w->walk, e->process, record_arg(r, KERNEL_NAME_INDEX))
                              : NULL;
    char title[GPU_TITLE_BYTES];
    uint64_t id = event_id(e->process, s->is_called ? s->call.id : r->correlation);
    event_begin(w, select_kind_word(selection_kind_of(r, NULL)), e->process, e->begin_ns,
                e->end_ns);
    put_kept(w, EVENT_NAME, name);
    if (!name)
        event_text(w, EVENT_NAME, record_title(r, title));
    if (id)
        event_number(w, EVENT_CORRELATION, id);
    put_record_args(w, r);
    if (s->is_called)
        put_call(w, s);
    if (type == RECORD_OVERHEAD || type == RECORD_MEMORY)
        event_row_put_step(w, e->process, e->begin_ns);
    if (type == RECORD_SYNC)
        event_number(
            w, EVENT_DEVICE,
            survey_context_device(&w->walk->survey, e->process, record_arg(r, SYNC_CONTEXT)));
}

/* Takes a block of PyTorch's allocator or a failed allocation; or a step, window, pause or dump,
 * with its number or state as argument. */
static void take_record(struct export_writer *w, const struct slice *s, enum select_kind kind)
{
    const struct event *e = &s->event;
    bool is_tensor = kind == SELECT_MEMORY;
    char title[GPU_TITLE_BYTES];
    begin_on(w, kind, e->process, e->thread, e->begin_ns, e->begin_ns);
    event_text(w, EVENT_NAME, record_title(e->record, title));
    if (is_tensor)
        event_arg_text(w, "allocator", "PyTorch");
    put_record_args(w, e->record);
    if (is_tensor)
        event_row_put_around(w, s);
}

/* Takes a sample, a wait, or an event of Python's interpreter. A stack is its number in the
 * process. */
static void take_host(struct export_writer *w, const struct slice *s)
{
    const struct event *e = &s->event;
    const struct record *r = e->record;
    struct host_sample sample;
    bool is_sample = host_sample(s, &sample), is_call = r->type == RECORD_OS_CALL;
    char text[GPU_TITLE_BYTES];
    begin_on(w, selection_kind_of(r, NULL), e->process,
             is_sample && sample.thread ? sample.thread : e->thread, e->begin_ns, e->end_ns);
    event_text(w, EVENT_NAME,
               is_sample ? sample.is_cpu ? "CPU sample" : "look at a thread"
               : is_call ? host_os_name(e, text)
                         : record_title(r, text));
    if (is_sample)
        event_number(w, EVENT_CALLS, sample.count);
    if (r->stack_id)
        event_arg_number(w, "stack", ARG_COUNT, r->stack_id);
    if (r->type == RECORD_GC)
        event_arg_number(w, "generation", ARG_COUNT, r->code);
    if (is_call && r->result)
        event_arg_number(w, "result", ARG_COUNT, (uint64_t)(int64_t)r->result);
    if (r->byte_count)
        end_arg(w, json_escape(begin_arg(w, "file", json_escape_bytes_max(r->byte_count)),
                               (const char *)r->bytes, r->byte_count));
    put_record_args(w, r);
    event_row_put_around(w, s);
}

/* ---- what the program says of itself --------------------------------------------------------- */

static void event_row_take_range(struct export_writer *w, const struct slice *s)
{
    const struct host_span *range = s->span;
    bool is_mark = s->change == SPAN_MARKED;
    uint64_t begin_ns = is_mark ? s->event.begin_ns : range->begin_ns;
    begin_on(w, is_mark ? SELECT_MARK : SELECT_RANGE, range->process, range->thread, begin_ns,
             is_mark ? begin_ns : range->end_ns);
    put_kept(w, EVENT_NAME, range->text);
    if (!is_mark)
        event_arg_text(w, "by", range->nested ? "push" : "start");
    put_kept_arg(w, "domain", range->domain_text);
    put_kept_arg(w, "category",
                 range->category ? spans_label(&w->walk->spans, range->process, LABEL_OF_CATEGORY,
                                               range->domain, range->category)
                                 : NULL);
    if (range->payload_type)
        end_arg(w, payload_json(range->payload_type, range->payload,
                                begin_arg(w, "payload", ARGUMENT_JSON_BYTES)));
}

static void event_row_take_op(struct export_writer *w, const struct slice *s)
{
    const struct host_span *op = s->span;
    const struct kernel_name *inputs =
        op->inputs ? walk_op_inputs(w->walk, op->process, op->inputs) : NULL;
    begin_on(w, op_is_label(op) ? SELECT_RANGE : SELECT_OPERATOR, op->process, op->thread,
             op->begin_ns, op->end_ns);
    put_kept(w, EVENT_NAME, op->text);
    event_arg_text(w, "by", event_op_kind(op));
    if (op->sequence)
        event_arg_number(w, "sequence", ARG_COUNT, op->sequence - 1);
    if (inputs)
        end_arg(w, op_put(begin_arg(w, "input_dims", OP_TEXT_BYTES(inputs->raw_bytes)), inputs->raw,
                          inputs->raw_bytes, op_put_dims));
}

static void event_row_take_library(struct export_writer *w, const struct slice *s)
{
    const struct host_span *call = s->span;
    begin_on(w, SELECT_LIBRARY, call->process, call->thread, call->begin_ns, call->end_ns);
    event_text(w, EVENT_NAME, call->function->name);
    event_number(w, EVENT_CALLS, 1);
    if (s->change == SPAN_CLOSED)
        put_result(w, call->function, call->result);
    put_kept_arg(w, "shape", library_kind_text(&w->walk->kinds, call->kind));
    put_function_args(w, s, call->function, call->args, call->arg_count);
}

static void take_span(struct export_writer *w, const struct slice *s)
{
    if (s->span->type == SPAN_RANGE)
        event_row_take_range(w, s);
    else if (s->span->type == SPAN_OP)
        event_row_take_op(w, s);
    else
        event_row_take_library(w, s);
    add_state(w, s->change == SPAN_LOST, "stale");
    add_state(w, s->change == SPAN_LEFT, "open");
}

/* Takes a device reading: one row per group of counters, with the known values. */
static void event_row_take_sample(struct export_writer *w, const struct slice *s)
{
    const struct record *r = s->event.record;
    const struct event_info *info = event_info(r->type);
    uint64_t at_ns = device_sample_ns(&s->event), value;
    char uuid[DEVICE_UUID_BYTES];
    event_begin(w, info->name, s->event.process, at_ns, at_ns);
    event_text(w, EVENT_NAME, s->source->title);
    event_row_put_step(w, s->event.process, at_ns);
    if (s->source->device != UINT64_MAX)
        event_number(w, EVENT_DEVICE, s->source->device);
    event_arg_text(w, "uuid", device_source_uuid_text(s->source, uuid));
    for (unsigned i = 1; i < info->arg_count; i++)
        if (device_value(r, i, &value))
            event_arg_number(w, info->args[i].label, ARG_COUNT, value);
}

/* Readings have no thread, kind, name or duration to select by. */
static bool shows_samples(const struct export_writer *w)
{
    const struct select_request *request = w->scope.selection ? w->scope.selection->request : NULL;
    return !request || !(request->kinds || request->name || request->min_ns || request->tids.count);
}

void event_take(struct export_writer *w, const struct slice *s)
{
    unsigned type = s->event.record->type;
    if (s->change == SPAN_OPENED)
        return;
    if (s->change)
        take_span(w, s);
    else if (type == RECORD_CALL)
        event_row_take_call(w, s);
    else if (is_stream_work(type) || type == RECORD_SYNC || type == RECORD_OVERHEAD ||
             type == RECORD_MEMORY)
        event_row_take_work(w, s);
    else if (type == RECORD_TENSOR || type == RECORD_TENSOR_OOM)
        take_record(w, s, SELECT_MEMORY);
    else if (type == RECORD_STEP || type == RECORD_PAUSE || type == RECORD_WINDOW ||
             type == RECORD_DUMP)
        take_record(w, s, SELECT_MARK);
    else if (is_host_record(type))
        take_host(w, s);
    else if (s->source && shows_samples(w))
        event_row_take_sample(w, s);
    else
        return;
    event_end(w);
}
