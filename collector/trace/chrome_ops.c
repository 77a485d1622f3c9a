/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PyTorch's operators, labels and modules as rows of a Chrome trace, with the arguments that
 * PyTorch's own traces have, and arrows from forward operators to their backward ones. One that
 * ends is a slice of its thread, as a nested range is (chrome_ranges.c); one that crosses another
 * stands beside. Memory: 6 MiB for the forward operators, at the first of them.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"
#include "error.h"
#include "trace/chrome.h"

_Static_assert(CHROME_EVENT_BYTES + 6 * RECORD_BYTES_MAX + 3 * OP_TEXT_BYTES(RECORD_BYTES_MAX) +
                       CHROME_STACK_BYTES <
                   OUTPUT_BUFFER_BYTES,
               "an operator fits into the buffer");

/* ---- arrows ---------------------------------------------------------------------------------- */

/* Of a forward operator its place is kept, too. */
static int keep_forward(struct trace_writer *w, const struct op *op, const struct trace_row *row)
{
    uint32_t slot;
    int kept = op_pairs_keep(&w->op_pairs, op, w->walk->op_threads[op->thread->index], &slot);
    if (kept <= 0)
        return kept;
    if (!w->forward_ids)
        w->forward_ids = calloc(OP_PAIRS_MAX, sizeof *w->forward_ids);
    if (!w->forward_ids)
        return GPUPROF_NO_MEMORY;
    memcpy(w->forward_ids[slot].text, row->ids, row->ids_bytes);
    w->forward_ids[slot].bytes = row->ids_bytes;
    return 0;
}

static char *put_end(char *out, uint64_t id, const char *ids, uint32_t ids_bytes, uint64_t at_ns)
{
    out = json_decimal(PUT(out, "\"cat\":\"fwdbwd\",\"name\":\"fwdbwd\",\"id\":"), id);
    out = chrome_put(PUT(out, ",\"pid\":"), ids, ids_bytes);
    return PUT(json_microseconds(out, at_ns), "}");
}

static void put_arrow(struct trace_writer *w, const struct op *op, const struct trace_row *row)
{
    const struct forward_op *forward = op_pairs_find(&w->op_pairs, op, walk_op_name(w->walk, op));
    if (!forward)
        return;
    const struct forward_ids *ids = &w->forward_ids[forward - w->op_pairs.slots];
    uint64_t id = chrome_flow_id(w, op->process);
    char *out = output_room(w->out, CHROME_EVENT_BYTES);
    out = PUT(out, ",\n{\"ph\":\"s\",");
    out = put_end(out, id, ids->text, ids->bytes, forward->begin_ns);
    out = PUT(out, ",\n{\"ph\":\"f\",\"bp\":\"e\",");
    out = put_end(out, id, row->ids, row->ids_bytes, op->begin_ns);
    output_advance(w->out, out);
}

static int connect(struct trace_writer *w, const struct op *op, const struct trace_row *row,
                   bool ended)
{
    put_arrow(w, op, row);
    return ended ? keep_forward(w, op, row) : 0;
}

/* ---- slices ---------------------------------------------------------------------------------- */

static char *put_inputs(char *out, const struct kernel_name *inputs, bool has_types)
{
    if (!inputs)
        return out;
    out = op_put_dims(PUT(out, ",\"Input Dims\":"), inputs->raw, inputs->raw_bytes);
    if (!has_types)
        return out;
    out = op_put_types(PUT(out, ",\"Input type\":"), inputs->raw, inputs->raw_bytes);
    return op_put_numbers(PUT(out, ",\"Concrete Inputs\":"), inputs->raw, inputs->raw_bytes);
}

/* Its begin and end are as they are shown. */
static void put_op(struct trace_writer *w, const struct op *op, const struct trace_row *row,
                   uint32_t stack, bool ended)
{
    const struct kernel_name *name = walk_op_name(w->walk, op);
    const struct kernel_name *inputs =
        op->inputs ? walk_op_inputs(w->walk, op->process, op->inputs) : NULL;
    char unnamed[48];
    snprintf(unnamed, sizeof unnamed, "\"operator %llu\"", (unsigned long long)op->name);
    char *out = output_room(w->out, CHROME_EVENT_BYTES + (name ? name->json_bytes : 0) +
                                        (inputs ? 3 * OP_TEXT_BYTES(inputs->raw_bytes) : 0) +
                                        (stack ? CHROME_STACK_BYTES : 0));
    out = chrome_begin_slice(w, out, op_is_label(op) ? "user_annotation" : "cpu_op",
                             name ? name->json : unnamed, name ? name->json_bytes : strlen(unnamed),
                             row, op->begin_ns, op->end_ns);
    out = json_decimal(PUT(out, ",\"External id\":"), op->number);
    out = json_decimal(PUT(out, ",\"Ev Idx\":"), op->number - 1);
    if (op->sequence) {
        out = json_number(PUT(out, ",\"Sequence number\":"), op->sequence - 1);
        if (!op->is_nvtx)
            out = json_number(PUT(out, ",\"Fwd thread id\":"), op->forward_thread);
    }
    out = put_inputs(out, inputs, !op->is_nvtx);
    if (op->is_nvtx)
        out = json_number(PUT(out, ",\"from\":\"emit_nvtx\",\"op_id\":"), op->object);
    if (op->is_traced)
        out = PUT(out, ",\"traced\":true");
    if (!ended)
        out = PUT(out, ",\"open\":true");
    chrome_end_slice(w, out, stack);
}

/* As PyTorch's own traces have the frames of modules: "nn.Module: CLASS_k", where k tells modules
 * of a class apart. Parents are the modules around them. */
static void put_module(struct trace_writer *w, const struct op *op, const struct trace_row *row,
                       bool ended)
{
    const struct kernel_name *name = walk_op_name(w->walk, op);
    const char *path = name ? strchr(name->json, ' ') : NULL;
    uint32_t class_bytes = path ? (uint32_t)(path - name->json) - 1 : 0; /* behind its quote */
    const struct op *parent = ops_module(&w->walk->ops, op);
    char text[sizeof "\"nn.Module: _\"" + 6 * RECORD_BYTES_MAX + VALUE_TEXT_MAX], *end = text;
    end = PUT(end, "\"nn.Module: ");
    if (path)
        end = chrome_put(end, name->json + 1, class_bytes);
    end = PUT(json_number(PUT(end, "_"), op->name), "\"");
    char *out = output_room(w->out, CHROME_EVENT_BYTES + 2 * (name ? name->json_bytes : 0));
    out = chrome_begin_slice(w, out, "python_function", text, (size_t)(end - text), row,
                             op->begin_ns, op->end_ns);
    out = json_decimal(PUT(out, ",\"External id\":"), op->number);
    out = json_decimal(PUT(out, ",\"Ev Idx\":"), op->number - 1);
    out = json_decimal(PUT(out, ",\"Python id\":"), op->number);
    out = parent ? json_decimal(PUT(out, ",\"Python parent id\":"), parent->number)
                 : PUT(out, ",\"Python parent id\":null");
    out = json_number(PUT(out, ",\"Python module id\":"), op->name);
    if (path)
        out = chrome_put(PUT(out, ",\"module\":\""), path + 1, name->json_bytes - class_bytes - 2);
    if (op->is_traced)
        out = PUT(out, ",\"traced\":true");
    if (!ended)
        out = PUT(out, ",\"open\":true");
    chrome_end_slice(w, out, 0);
}

/* Nothing that is open on its thread, operator or nested range, began later. */
static bool is_innermost(struct trace_writer *w, const struct op *op)
{
    const struct range *range = ranges_innermost(&w->walk->ranges, op->thread, true);
    return ops_was_innermost(&w->walk->ops, op->thread, op->number) &&
           (!range || range->sequence < op->number);
}

static int close_op(struct trace_writer *w, const struct op *closed, bool ended)
{
    struct op shown = *closed, *op = &shown;
    const struct trace_row *row =
        chrome_close_nested(w, op->process, chrome_row(w, op->thread->index),
                            is_innermost(w, closed), op->row, &op->begin_ns, &op->end_ns);
    uint32_t stack;
    if (!row || chrome_stack(w, op->process, op->stack, NULL, &stack) < 0)
        return GPUPROF_NO_MEMORY;
    if (op_is_module(op))
        put_module(w, op, row, ended);
    else
        put_op(w, op, row, stack, ended);
    return connect(w, op, row, ended);
}

int chrome_op(struct trace_writer *w, const struct slice *s)
{
    if (s->op_change != OP_OPENED)
        return close_op(w, s->op, s->op_change == OP_CLOSED);
    s->op->row = chrome_open_nested(w, s->op->thread, s->op->begin_ns);
    return 0;
}

int chrome_op_of(struct trace_writer *w, const struct slice *s, uint32_t *external_id)
{
    struct op_place place = {.number = s->is_called ? s->call.op : 0};
    const struct op_node *node;
    int error = 0;
    do
        node = survey_op(w->scope.survey, &s->call, &place, &error);
    while (node && !op_scope_works(node->scope));
    *external_id = node ? node->number : 0;
    return error;
}
