/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/op_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/op_names.h"

static void op_report_analysis_release(struct report *r)
{
    struct op_report *o = r->ops;
    free(o->entries);
    free(o->has_ops);
    number_set_release(&o->numbers);
    op_pairs_release(&o->pairs);
    graph_origins_release(&o->graphs);
}

/* ---- entries --------------------------------------------------------------------------------- */

static const struct op_formula *formula_of(struct op_report *o, const struct kernel_name *text)
{
    uint64_t slot = ((uintptr_t)text * 0x9E3779B97F4A7C15u >> 40) % OP_FORMULA_SLOTS;
    if (o->formulae[slot].text != text) {
        o->formulae[slot].text = text;
        o->formulae[slot].formula = op_formula_of(text->shown);
    }
    return o->formulae[slot].formula;
}

/* The innermost operator or label around `op`, which is open; NULL if there is none. */
static struct host_span *op_report_around(const struct op_report *o, const struct host_span *op)
{
    struct host_span *around = spans_around(&o->walk->spans, op);
    while (around && (around->is_traced || op_is_module(around)))
        around = spans_around(&o->walk->spans, around);
    return around;
}

/* The entry of the innermost hook around `op`, which is open, + 1; 0: none. */
static uint32_t hook_around(const struct op_report *o, const struct host_span *op)
{
    while ((op = spans_around(&o->walk->spans, op)))
        if (op_is_label(op) && !op->is_traced && o->entries[op->row].is.table == OP_HOOKS)
            return op->row + 1;
    return 0;
}

/* A module's calls are its own. A backward operator, and all inside it, belongs to the module of
 * its forward operator. */
static void find_module(const struct op_report *o, const struct host_span *op,
                        const struct op_class *outer, struct op_class *is)
{
    const struct host_span *module = spans_module(&o->walk->spans, op);
    if (is->forward && o->entries[is->forward - 1].is.module)
        is->backward_of = o->entries[is->forward - 1].is.module;
    else if (outer)
        is->backward_of = outer->backward_of;
    is->is_backward = is->backward_of && !(outer && outer->backward_of);
    is->module = is->table == OP_HOOKS        ? hook_around(o, op)
                 : module && !is->backward_of ? module->row + 1
                                              : 0;
}

/* The innermost label or range around the operator, which is open; NULL: none. */
static const struct kernel_name *range_around(const struct op_report *o, const struct host_span *op)
{
    const struct span_stack *stack = span_stack(&o->walk->spans, op->thread->index);
    for (const struct host_span *around = op; around-- > stack->open;)
        if (around->type == SPAN_RANGE ||
            (around->type == SPAN_OP && op_is_label(around) && !around->is_traced))
            return around->text;
    return NULL;
}

static bool is_compiled(const struct kernel_name *text)
{
    return text && (strstr(text->shown, "CompiledFxGraph") || strstr(text->shown, "inductor_") ||
                    strstr(text->shown, "Torch-Compiled Region"));
}

static struct op_class class_of(struct op_report *o, const struct host_span *op,
                                const struct host_span *outer)
{
    const struct op_formula *formula = op_works(op) && op->text ? formula_of(o, op->text) : NULL;
    const struct forward_op *forward = op_pairs_find(&o->pairs, op, op->text);
    const struct op_class *outer_is = outer ? &o->entries[outer->row].is : NULL;
    bool is_label = op_is_label(op), is_hook = is_label && op->text && op_hook_name(op->text);
    struct op_class is = {.process = op->process,
                          .text = op->text,
                          .formula = formula,
                          .inputs = formula || o->by == BY_SHAPE ? op->inputs : 0,
                          .forward = forward ? forward->row + 1 : 0,
                          .table = op_is_module(op) ? OP_MODULES
                                   : is_hook        ? OP_HOOKS
                                   : is_label       ? OP_LABELS
                                                    : OP_OPERATORS,
                          .is_covered = outer_is && outer_is->counts,
                          .is_compiled = is_label && is_compiled(op->text)};
    is.counts = is.is_covered || (formula && formula->counter);
    if (o->by == BY_STACK && outer && is.table != OP_MODULES)
        is.parent = outer->row + 1;
    if (o->by == BY_RANGE && is.table == OP_OPERATORS)
        is.range = range_around(o, op);
    find_module(o, op, outer_is, &is);
    return is;
}

/* The index of the entry for such calls. If there is no room, of one for all calls of that name
 * with the same surroundings, or else for all others of the table. */
static uint32_t entry_place(struct op_report *o, const struct op_class *is)
{
    static const struct number_kind kind = NUMBER_KEY(struct op_entry, is);
    const struct op_class wanted[] = {*is,
                                      {.process = is->process,
                                       .text = is->text,
                                       .formula = is->formula,
                                       .range = is->range,
                                       .parent = is->parent,
                                       .table = is->table},
                                      {.table = is->table}};
    const uint32_t most[] = {o->count_max, o->count_max + o->count_max / 4, UINT32_MAX};
    int64_t number = 0;
    for (unsigned i = 0; !number && i < 3; i++) {
        struct op_entry made = {.is = wanted[i]};
        number = NUMBER_ADD(&o->numbers, &kind, o->entries, o->count, most[i], &made);
    }
    return (uint32_t)number - 1;
}

/*
 * Under a Python mode (FlopCounterMode, selective checkpointing) another operator runs the
 * requested one, or skips it; a subclass of Tensor runs others, as DTensor does for its shard. So
 * the requested operator has no FLOPs; with a subclass no operator around has, since inner sizes
 * differ.
 */
static void hand_to_python(struct op_report *o, const struct host_span *op)
{
    enum op_python python = op_python_of(op->text);
    struct host_span *around = python ? spans_around(&o->walk->spans, op) : NULL;
    for (; around; around = spans_around(&o->walk->spans, around)) {
        if (!op_works(around))
            continue;
        struct op_class is = o->entries[around->row].is;
        is.counts = is.is_covered = is.is_covered && python == OP_PYTHON_MODE;
        is.formula = NULL;
        is.inputs = o->by == BY_SHAPE ? is.inputs : 0;
        around->row = entry_place(o, &is);
        if (python == OP_PYTHON_MODE)
            break;
    }
}

static void open_op(struct op_report *o, struct host_span *op)
{
    struct host_span *outer = op_report_around(o, op);
    hand_to_python(o, op);
    struct op_class is = class_of(o, op, outer);
    op->row = entry_place(o, &is);
    o->has_ops[op->thread->index] = true;
    if (outer && is.table != OP_MODULES) {
        outer->inside++;
        outer->duplicate = op->text && op->text == outer->text ? op->row + 1 : 0;
    }
}

static void count_op(struct op_report *o, const struct host_span *op)
{
    struct op_entry *entry = &o->entries[op->row];
    uint64_t ns = op->end_ns - op->begin_ns;
    bool is_apart = entry->is.table == OP_MODULES || entry->is.table == OP_HOOKS;
    entry->values[OP_CALLS]++;
    entry->values[OP_TOTAL] += ns;
    if (!is_apart && !op->is_moved && ns > op->inner_ns)
        entry->values[OP_SELF] += ns - op->inner_ns;
    if (op->inside == 1 && op->duplicate)
        o->entries[op->duplicate - 1].duplicates++;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The state of work while it is credited from the innermost operator to the outermost. */
struct credit {
    uint64_t ns;
    uint64_t device;
    unsigned tables; /* bits of enum op_table: of the entries so far */
    bool is_backward;
    bool is_found;                   /* in an entry with a formula */
    const struct kernel_name *label; /* label of compiled code */
};

static bool is_in_op(const struct credit *c)
{
    return c->tables >> OP_OPERATORS & 1;
}

static void op_report_credit(struct op_report *o, struct credit *c, struct op_entry *entry)
{
    const struct op_class *is = &entry->is;
    /* An operator's or hook's work is not the own work of a label around it. */
    unsigned inner = is->table == OP_LABELS ? ~(1u << OP_MODULES) : 1u << is->table;
    entry->device = c->device;
    entry->values[OP_GPU] += c->ns;
    entry->values[OP_GPU_SELF] += c->tables & inner ? 0 : c->ns;
    if (is->formula && !c->is_found)
        entry->found_ns += c->ns;
    c->is_found |= is->formula != NULL;
    if (is->backward_of && !c->is_backward)
        o->entries[is->backward_of - 1].values[OP_BACKWARD_GPU] += c->ns;
    c->is_backward |= is->backward_of != 0;
    c->tables |= 1u << is->table;
    if (is->is_compiled && !c->label)
        c->label = is->text;
}

/* Adds work without an operator; `label` is that of compiled code around it, or NULL. */
static void add_none(struct op_report *o, const struct slice *s, const struct kernel_name *label)
{
    const struct record *r = s->event.record;
    const struct kernel_name *kernel = NULL;
    uint64_t why = label ? NONE_COMPILED : !s->is_called ? NONE_CALL : NONE_BETWEEN;
    if (why == NONE_BETWEEN && !o->has_ops[s->call.thread])
        why |= (s->call.thread + 1ull) << 32;
    if (!label && r->type == RECORD_KERNEL)
        kernel = walk_kernel(o->walk, s->event.process, record_arg(r, KERNEL_NAME_INDEX));
    op_report_add_none(o, why, label ? label : kernel, 1, s->event.end_ns - s->event.begin_ns);
}

/* Credits GPU work to all operators and labels that were open when its call began. */
static int op_report_take_work(void *context, const struct slice *s)
{
    struct op_report *o = context;
    struct credit c = {.ns = s->event.end_ns - s->event.begin_ns,
                       .device = record_arg(s->event.record, KERNEL_DEVICE)};
    uint32_t number = s->is_called ? s->call.span : 0;
    const struct span_node *node;
    if (s->is_filtered)
        return 0;
    while ((node = survey_span(&o->walk->survey, &s->call, SPANS_OF(SPAN_OP), &number, false)))
        op_report_credit(o, &c, &o->entries[node->row]);
    if (!is_in_op(&c) && !graph_origins_work(&o->graphs, s)) /* or its owner is known at the end */
        add_none(o, s, c.label);
    return 0;
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Counts operators that are captured with this call. */
static void count_captured(struct op_report *o, const struct thread *thread,
                           const struct captured_call *call)
{
    const struct spans *spans = &o->walk->spans;
    const struct host_span *op = spans_innermost(spans, thread, SPAN_OP);
    for (; op && captured_is_first(call, op->begin_ns); op = spans_around(spans, op))
        if (!op->is_traced && !op_is_label(op))
            o->entries[op->row].captured++;
}

static int report_node(void *context, const struct graph_node *node, enum graph_origin origin,
                       const struct captured_call *call)
{
    struct op_report *o = context;
    struct credit c = {.ns = node->ns, .device = node->device};
    uint32_t number = call ? call->call.span : 0;
    const struct span_node *op;
    while ((op = survey_span(&o->walk->survey, call ? &call->call : NULL, SPANS_OF(SPAN_OP),
                             &number, false))) {
        struct op_entry *entry = &o->entries[op->row];
        bool was_in_op = is_in_op(&c);
        if (op->scope == OP_SCOPE_LABEL)
            continue;
        entry->replays += captured_is_first(call, op->begin_ns) ? node->count : 0;
        op_report_credit(o, &c, entry);
        entry->values[OP_GRAPH] += is_in_op(&c) && !was_in_op ? node->ns : 0;
    }
    const struct kernel_name *kernel =
        node->kernel ? walk_kernel(o->walk, node->process, node->kernel) : NULL;
    if (!is_in_op(&c))
        op_report_add_none(o, NONE_GRAPH | (uint64_t)origin << 8, kernel, node->count, node->ns);
    return 0;
}

/* ---- as a consumer --------------------------------------------------------------------------- */

static int op_report_take_slice(void *context, const struct slice *s)
{
    struct op_report *o = context;
    if (s->event.record->type == RECORD_CALL) {
        const struct captured_call *captured = graph_origins_take(&o->graphs, s);
        if (captured)
            count_captured(o, s->event.thread, captured);
        return 0;
    }
    enum span_change change = slice_change(s, SPAN_OP);
    if (change == SPAN_SAME || change == SPAN_LOST || s->span->is_traced)
        return 0;
    if (change == SPAN_OPENED)
        open_op(o, s->span);
    else if (!s->is_filtered)
        count_op(o, s->span);
    if (change == SPAN_CLOSED)
        op_pairs_keep(&o->pairs, s->span, o->walk->op_threads[s->span->thread->index]);
    return 0;
}

static int op_report_end(void *context)
{
    struct op_report *o = context;
    graph_origins_report(&o->graphs, report_node, o);
    op_report_complete(o);
    for (unsigned i = 0; i < OP_TABLES; i++)
        sums_finish(&o->sums[i]);
    return 0;
}

static void op_report_analysis_begin(struct report *r)
{
    struct op_report *o = r->ops;
    bool has_work = report_wants_steps(r) || recording_any(r->rec, process_expects_gpu);
    uint64_t more = recording_bytes(r->rec) / OP_ROW_BYTES;
    o->sums = &r->sums[ANALYSIS_ops_sums];
    o->by = r->request.by;
    o->walk = &r->walk;
    o->count_max = more < OP_ROWS_MAX - OP_ROWS_FREE ? OP_ROWS_FREE + (uint32_t)more : OP_ROWS_MAX;
    o->has_ops = memory_new(r->rec->thread_count + 1u, sizeof *o->has_ops);
    graph_origins_init(&o->graphs, o->walk);
    for (unsigned i = 0; i < OP_TABLES; i++)
        o->sums[i].owner = o;
    report_hear(r, (struct consumer){.context = o,
                                     .needs = WALK_SPANS | (has_work ? (unsigned)WALK_WORK : 0),
                                     .skips = WALK_SKIPS_PLAIN_CALLS |
                                              (has_work ? 0 : (unsigned)WALK_SKIPS_WORK),
                                     .sees_filtered = true, /* graphs come from captures */
                                     .take = op_report_take_slice,
                                     .take_work = op_report_take_work,
                                     .end = op_report_end});
}

const struct analysis ops_analysis = {ANALYSIS_STATE(ops), .uses = USE_EXPORT, .parts = REPORT_OPS,
                                      .begin = op_report_analysis_begin,
                                      .release = op_report_analysis_release};
