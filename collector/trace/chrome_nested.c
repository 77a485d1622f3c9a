/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges, PyTorch operators, labels, modules and library calls as rows of a Chrome trace. A nested
 * one is a slice of its thread, written at its end with a begin fixed at its start; its place in
 * the file does not matter. One that crosses another goes to a row beside it. A range's projection
 * on a stream spans the first to the last work launched inside it; this needs one stack per stream,
 * however many ranges exist. Memory: 6 MiB for forward operators, if there are any.
 */
#include <stdlib.h>

#include "api/api.h"
#include "base/memory.h"
#include "flight.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"
#include "trace/chrome.h"

#define ARGS_BYTES (6 * FUNCTION_BYTES_MAX + RECORD_ARGS_MAX * 48)

_Static_assert(CHROME_EVENT_BYTES + 3 * RANGE_TEXT_BYTES < OUTPUT_BUFFER_BYTES &&
                   CHROME_EVENT_BYTES + 6 * RECORD_BYTES_MAX + CHROME_STACK_BYTES +
                           3 * OP_TEXT_BYTES(RECORD_BYTES_MAX) <
                       OUTPUT_BUFFER_BYTES &&
                   CHROME_EVENT_BYTES + 6 * FUNCTION_BYTES_MAX + ARGS_BYTES +
                           6 * KERNEL_NAME_BYTES_MAX + CHROME_STACK_BYTES <
                       OUTPUT_BUFFER_BYTES,
               "an event fits into the buffer");

/* ---- where they are shown ---------------------------------------------------------------------
 */

/* Closes a slice: on its thread's row (NULL: not nested) if it is innermost there, else on a row
 * beside it. */
static void close_nested(struct trace_writer *w, const struct host_span *span, struct shown *at)
{
    bool is_free = span->type == SPAN_RANGE && !span->nested;
    at->row = is_free ? NULL : chrome_row(w, span->thread->index);
    at->begin_ns = chrome_time(w, span->begin_ns);
    at->end_ns = chrome_time(w, span->end_ns);
    if (!(at->row && trace_row_close(at->row, &at->begin_ns, &at->end_ns)))
        chrome_place(w, span->process, ROW_RANGE, 0, 0, FREE_LANE, 0, at);
    chrome_reach_into(w, span->process, at);
}

/* ---- ranges -----------------------------------------------------------------------------------
 */

/* Writes a payload of NVTX's extension: decoded if NCCL's, else its first words. */
static char *chrome_nested_put_data(char *out, const struct host_span *range)
{
    static const char *const names[NCCL_NUMBERS] = {"reduction", "root", "peer",
                                                    "ranks",     "rank", "device"};
    struct nccl_call call;
    if (!nccl_call_of(range, &call)) {
        out = PUT_FIELD(out, "payload schema", range->schema);
        out = PUT_FIELD(out, "payload bytes", range->data_bytes);
        out = PUT(out, ",\"payload words\":[");
        for (unsigned i = 0; i < RANGE_DATA_WORDS && 8ull * i < range->data_bytes; i++)
            out = PUT(json_hex(i ? PUT(out, ",\"") : PUT(out, "\""), range->data[i]), "\"");
        return PUT(out, "]");
    }
    out = PUT(json_hex(PUT(out, ",\"communicator\":\""), call.communicator), "\"");
    if (call.has_bytes)
        out = PUT_FIELD(out, "bytes", call.bytes);
    for (unsigned i = 0; i < NCCL_NUMBERS; i++) {
        const char *text = i == NCCL_REDUCTION ? nccl_reduction_text(call.numbers[i]) : NULL;
        if (call.has & 1u << i)
            out += text ? sprintf(out, ",\"%s\":\"%s\"", names[i], text)
                        : sprintf(out, ",\"%s\":%d", names[i], call.numbers[i]);
    }
    return out;
}

char *chrome_put_attributes(struct trace_writer *w, char *out, const struct host_span *range)
{
    const struct kernel_name *category =
        range->category ? spans_label(&w->walk->spans, range->process, LABEL_OF_CATEGORY,
                                      range->domain, range->category)
                        : NULL;
    if (range->domain && range->domain_text)
        out = mempcpy(PUT(out, ",\"domain\":"), range->domain_text->json,
                      range->domain_text->json_bytes);
    else if (range->domain)
        out = PUT_FIELD(out, "domain", range->domain);
    if (category)
        out = mempcpy(PUT(out, ",\"category\":"), category->json, category->json_bytes);
    else if (range->category)
        out = PUT_FIELD(out, "category", range->category);
    if (range->color)
        out = PUT(json_hex(PUT(out, ",\"color\":\""), range->color), "\"");
    if (range->payload_type)
        out = payload_json(range->payload_type, range->payload, PUT(out, ",\"payload\":"));
    return range->schema ? chrome_nested_put_data(out, range) : out;
}

/* Writes what is missing of a span: its end, or all that came after it. */
static char *put_change(char *out, enum span_change change)
{
    return change == SPAN_LEFT   ? PUT(out, ",\"open\":true")
           : change == SPAN_LOST ? PUT(out, ",\"stale\":true")
                                 : out;
}

/* Writes a range up to the members after its number. */
static char *begin_range(struct trace_writer *w, const char *category,
                         const struct kernel_name *text, uint64_t sequence, const struct shown *at)
{
    char *out = chrome_begin_slice(w, category, text, "range", at, 2 * RANGE_TEXT_BYTES);
    return json_decimal(PUT(out, ",\"External id\":"), sequence);
}

static void put_range(struct trace_writer *w, const struct host_span *range, const struct shown *at,
                      enum span_change change)
{
    char *out = begin_range(w, "user_annotation", range->text, range->number, at);
    chrome_end_slice(w, put_change(chrome_put_attributes(w, out, range), change), 0);
    /* TensorBoard's operator view needs this to assign kernels. Not in a trace of a whole job,
     * which it cannot read: viewers would show each range twice. */
    if (w->scope.only && range->used && range->nested)
        chrome_end_slice(w, begin_range(w, "cpu_op", range->text, range->number, at), 0);
}

void chrome_projected(void *context, const struct projection *p,
                      const struct projected_range *range)
{
    struct trace_writer *w = context;
    struct shown at = {.begin_ns = range->begin_ns, .end_ns = range->end_ns};
    const struct kernel_name *text = range->text;
    /* Kineto's readers take a step on a device for work. */
    if (text && strncmp(text->shown, STEP_NAME, sizeof STEP_NAME - 1) == 0)
        return;
    at.row =
        &chrome_lane(w, p->process, ROW_ANNOTATION, p->device, p->stream, p->lane, p->thread, &at)
             ->row;
    chrome_end_slice(w, begin_range(w, "gpu_user_annotation", text, range->sequence, &at), 0);
}

/* ---- operators --------------------------------------------------------------------------------
 */

/* Writes the arrow to a backward operator from its forward one; stores the place of a forward
 * one. */
static void connect(struct trace_writer *w, const struct host_span *op, const struct shown *at,
                    bool ended)
{
    struct chrome_rows *rows = &w->rows;
    struct host_span shown = *op; /* op_pairs keep the times that are shown */
    shown.begin_ns = at->begin_ns;
    shown.end_ns = at->end_ns;
    const struct forward_op *forward = op_pairs_find(&rows->op_pairs, &shown, op->text);
    if (forward)
        chrome_put_arrow(w, op->process, "fwdbwd",
                         &rows->forward_ids[forward - rows->op_pairs.slots], forward->begin_ns, at);
    uint64_t thread = w->walk->op_threads[op->thread->index];
    const struct forward_op *kept = ended ? op_pairs_keep(&rows->op_pairs, &shown, thread) : NULL;
    if (!kept)
        return;
    if (!rows->forward_ids)
        rows->forward_ids = memory_new(OP_PAIRS_MAX, sizeof *rows->forward_ids);
    rows->forward_ids[kept - rows->op_pairs.slots] = at->row->ids;
}

/* Writes the members that both kinds of operators end with. */
static void end_op(struct trace_writer *w, char *out, const struct host_span *op,
                   enum span_change change, uint32_t stack)
{
    if (op->is_traced)
        out = PUT(out, ",\"traced\":true");
    chrome_end_slice(w, put_change(out, change), stack);
}

static void put_op(struct trace_writer *w, const struct host_span *op, const struct shown *at,
                   uint32_t stack, enum span_change change)
{
    const struct kernel_name *inputs =
        op->inputs ? walk_op_inputs(w->walk, op->process, op->inputs) : NULL;
    char unnamed[48];
    snprintf(unnamed, sizeof unnamed, "operator %llu", (unsigned long long)op->name);
    char *out = chrome_begin_slice(
        w, op_is_label(op) ? "user_annotation" : "cpu_op", op->text, unnamed, at,
        (inputs ? 3 * OP_TEXT_BYTES(inputs->raw_bytes) : 0) + (stack ? CHROME_STACK_BYTES : 0));
    out = json_decimal(PUT(out, ",\"External id\":"), op->number);
    out = json_decimal(PUT(out, ",\"Ev Idx\":"), op->number - 1);
    if (op->sequence)
        out = PUT_FIELD(out, "Sequence number", op->sequence - 1);
    if (op->sequence && !op->is_nvtx)
        out = PUT_FIELD(out, "Fwd thread id", op->forward_thread);
    if (inputs)
        out = op_put(PUT(out, ",\"Input Dims\":"), inputs->raw, inputs->raw_bytes, op_put_dims);
    if (inputs && !op->is_nvtx) {
        out = op_put(PUT(out, ",\"Input type\":"), inputs->raw, inputs->raw_bytes, op_put_type);
        out = op_put(PUT(out, ",\"Concrete Inputs\":"), inputs->raw, inputs->raw_bytes,
                     op_put_numbers);
    }
    if (op->is_nvtx)
        out = json_number(PUT(out, ",\"from\":\"emit_nvtx\",\"op_id\":"), op->object);
    end_op(w, out, op, change, stack);
}

/* Named as in PyTorch's own traces: "nn.Module: CLASS_k", where k numbers the modules of a class.
 * Parents are the enclosing modules. */
static void put_module(struct trace_writer *w, const struct host_span *op, const struct shown *at,
                       enum span_change change)
{
    const struct kernel_name *name = op->text;
    const char *path = name ? strchr(name->shown, ' ') : NULL;
    const struct host_span *parent = spans_module(&w->walk->spans, op);
    char text[RECORD_BYTES_MAX + 64];
    snprintf(text, sizeof text, "nn.Module: %.*s_%llu", path ? (int)(path - name->shown) : 0,
             path ? name->shown : "", (unsigned long long)op->name);
    char *out = chrome_begin_slice(w, "python_function", NULL, text, at,
                                   name ? json_escape_bytes_max(strlen(name->shown)) : 0);
    out = json_decimal(PUT(out, ",\"External id\":"), op->number);
    out = json_decimal(PUT(out, ",\"Ev Idx\":"), op->number - 1);
    out = json_decimal(PUT(out, ",\"Python id\":"), op->number);
    out = parent ? json_decimal(PUT(out, ",\"Python parent id\":"), parent->number)
                 : PUT(out, ",\"Python parent id\":null");
    out = PUT_FIELD(out, "Python module id", op->name);
    if (path)
        out = json_escape(PUT(out, ",\"module\":"), path + 1, strlen(path + 1));
    end_op(w, out, op, change, 0);
}

static void put_operator(struct trace_writer *w, const struct host_span *op, const struct shown *at,
                         enum span_change change)
{
    uint32_t stack = chrome_stack(w, op->process, op->stack, NULL);
    if (op_is_module(op))
        put_module(w, op, at, change);
    else
        put_op(w, op, at, stack, change);
    connect(w, op, at, change == SPAN_CLOSED);
}

/* ---- calls of libraries -----------------------------------------------------------------------
 */

static void put_library(struct trace_writer *w, const struct host_span *call,
                        const struct shown *at, enum span_change change)
{
    const struct function *f = call->function;
    const struct kernel_name *text = library_kind_text(&w->walk->kinds, call->kind);
    uint32_t stack = chrome_stack(w, call->process, call->stack, NULL);
    char *out = chrome_begin_slice(
        w, f->domain < API_DOMAIN_COUNT ? api_libraries[f->domain].category : "library", NULL,
        f->name, at, ARGS_BYTES + (text ? text->json_bytes : 0) + (stack ? CHROME_STACK_BYTES : 0));
    if (text)
        out = mempcpy(PUT(out, ",\"call\":"), text->json, text->json_bytes);
    for (unsigned i = 0; i < call->arg_count && i < f->arg_count; i++) {
        out = chrome_put_key(out, f->args[i].label);
        out = argument_json(f->args[i].kind, call->args[i], out);
    }
    out = change == SPAN_CLOSED ? chrome_put_result(out, f, call->result) : put_change(out, change);
    chrome_end_slice(w, out, stack);
}

void chrome_nested(struct trace_writer *w, const struct slice *s)
{
    const struct host_span *span = s->span;
    bool is_free = span->type == SPAN_RANGE && !span->nested;
    struct shown at = {0};
    if (s->change == SPAN_OPENED && !is_free)
        trace_row_open(chrome_row(w, span->thread->index), chrome_time(w, span->begin_ns));
    if (s->change == SPAN_OPENED)
        return;
    close_nested(w, span, &at);
    if (span->type == SPAN_RANGE)
        put_range(w, span, &at, s->change);
    else if (span->type == SPAN_OP)
        put_operator(w, span, &at, s->change);
    else
        put_library(w, span, &at, s->change);
}
