/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/op_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/op_stack.h"

#define CHAINS_MAX     (1u << 22) /* words */
#define CHAIN_IS_FIRST (1u << 31) /* flag beside an entry: first captured call of its operator */

static int op_report_analysis_begin(struct report *r)
{
    struct op_report *o = r->ops;
    uint64_t more = recording_bytes(r->rec) / OP_ROW_BYTES;
    o->sums = &r->sums[ANALYSIS_ops_sums];
    o->by = r->request.by;
    o->walk = &r->walk;
    o->rows_max = more < OP_ROWS_MAX - OP_ROWS_FREE ? OP_ROWS_FREE + (uint32_t)more : OP_ROWS_MAX;
    o->has_ops = calloc(r->rec->thread_count + 1u, sizeof *o->has_ops);
    graph_origins_init(&o->graphs, o->walk);
    for (unsigned i = 0; i < OP_TABLES; i++)
        o->sums[i].owner = o;
    return o->has_ops ? 0 : GPUPROF_NO_MEMORY;
}

static void op_report_analysis_release(struct report *r)
{
    struct op_report *o = r->ops;
    free(o->rows);
    free(o->entries);
    free(o->chains.words);
    free(o->has_ops);
    number_set_release(&o->row_numbers);
    number_set_release(&o->entry_numbers);
    op_pairs_release(&o->pairs);
    graph_origins_release(&o->graphs);
}

/* ---- rows and entries ------------------------------------------------------------------------ */

static const struct op_formula *formula_of(struct op_report *o, const struct kernel_name *text)
{
    uint64_t slot = ((uintptr_t)text * 0x9E3779B97F4A7C15u >> 40) % OP_FORMULA_SLOTS;
    if (o->formulae[slot].text != text) {
        o->formulae[slot].text = text;
        o->formulae[slot].formula = op_formula_of(text->shown);
    }
    return o->formulae[slot].formula;
}

/* The innermost operator or label around `op`; NULL if there is none. */
static struct op *op_report_around(const struct op_report *o, const struct op *op)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    for (uint32_t i = stack->count; i-- > 0;)
        if (&stack->open[i] != op && !stack->open[i].is_traced && !op_is_module(&stack->open[i]))
            return &stack->open[i];
    return NULL;
}

/* A module's calls are its own. A backward operator, and all inside it, belongs to the module of
 * its forward operator. */
static void find_module(const struct op_report *o, const struct op *op,
                        const struct forward_op *forward, const struct op_class *outer,
                        struct op_class *is)
{
    const struct op *module = ops_module(&o->walk->ops, op);
    if (forward && o->entries[forward->row].is.module)
        is->backward_of = o->entries[forward->row].is.module;
    else if (outer)
        is->backward_of = outer->backward_of;
    is->is_backward = is->backward_of && !(outer && outer->backward_of);
    is->module = module && !is->backward_of ? module->row + 1 : 0;
}

/* Sets the row's range to the innermost label or range around the operator; they share a
 * numbering. */
static void find_range(const struct op_report *o, const struct op *op, struct op_row *row)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    const struct range_stack *ranges = ranges_stack(&o->walk->ranges, op->thread->index);
    const struct range *range = NULL;
    const struct op *label = NULL;
    for (uint32_t i = ranges->count; !range && i-- > 0;)
        if (!ranges->open[i].is_op) /* emit_nvtx's are in the other stack */
            range = &ranges->open[i];
    for (uint32_t i = stack->count; !label && i-- > 0;)
        if (op_is_label(&stack->open[i]) && !stack->open[i].is_traced)
            label = &stack->open[i];
    if (range && (!label || range->sequence > label->number))
        row->range = range->text;
    else if (label)
        row->range = label->text;
}

static bool is_compiled(const struct kernel_name *text)
{
    return text && (strstr(text->shown, "CompiledFxGraph") || strstr(text->shown, "inductor_") ||
                    strstr(text->shown, "Torch-Compiled Region"));
}

static struct op_row op_report_row_of(const struct op_report *o, const struct op *op,
                                      const struct op *outer)
{
    bool is_label = op_is_label(op), is_hook = is_label && op->text && op_hook_name(op->text);
    struct op_row row = {.table = op_is_module(op) ? OP_MODULES
                                  : is_hook        ? OP_HOOKS
                                  : is_label       ? OP_LABELS
                                                   : OP_OPERATORS,
                         .text = op->text,
                         .process = op->process,
                         .inputs = o->by == BY_SHAPE ? op->inputs : 0};
    if (o->by == BY_STACK && outer && row.table != OP_MODULES)
        row.parent = o->entries[outer->row].is.row + 1;
    if (o->by == BY_RANGE && row.table == OP_OPERATORS)
        find_range(o, op, &row);
    return row;
}

static struct op_class class_of(struct op_report *o, const struct op *op, const struct op *outer,
                                uint32_t row)
{
    const struct op_formula *formula = op_works(op) && op->text ? formula_of(o, op->text) : NULL;
    const struct forward_op *forward = op_pairs_find(&o->pairs, op, op->text);
    const struct op_class *outer_is = outer ? &o->entries[outer->row].is : NULL;
    struct op_class is = {.row = row,
                          .forward = forward ? o->entries[forward->row].is.row + 1 : 0,
                          .formula = formula,
                          .inputs = formula ? op->inputs : 0,
                          .is_covered = outer_is && outer_is->counts,
                          .is_compiled = op_is_label(op) && is_compiled(op->text)};
    is.counts = is.is_covered || (formula && formula->counter);
    find_module(o, op, forward, outer_is, &is);
    return is;
}

/* The index of a row; if there is no room, of the row for all others of its table. */
static int64_t row_place(struct op_report *o, const struct op_row *wanted)
{
    static const struct number_kind kind = NUMBER_KEY(struct op_row, table);
    struct op_row others = {.table = wanted->table};
    int64_t number = NUMBER_ADD(&o->row_numbers, &kind, o->rows, o->count, o->rows_max, wanted);
    if (!number)
        number = NUMBER_ADD(&o->row_numbers, &kind, o->rows, o->count, UINT32_MAX, &others);
    return number < 0 ? number : number - 1;
}

/* The index of the entry for such calls; if there is no room, of one for all calls of the row. */
static int64_t entry_place(struct op_report *o, const struct op_class *is)
{
    static const struct number_kind kind = NUMBER_KEY(struct op_entry, is);
    struct op_entry wanted = {.is = *is};
    int64_t number =
        NUMBER_ADD(&o->entry_numbers, &kind, o->entries, o->entry_count, o->rows_max, &wanted);
    if (!number) {
        wanted.is = (struct op_class){.formula = is->formula, .row = is->row};
        number =
            NUMBER_ADD(&o->entry_numbers, &kind, o->entries, o->entry_count, UINT32_MAX, &wanted);
    }
    return number < 0 ? number : number - 1;
}

/* Moves an operator to an entry without FLOPs, since other operators do its work. */
static int hand_over(struct op_report *o, struct op *op, enum op_python python)
{
    struct op_class is = o->entries[op->row].is;
    is.counts = is.is_covered = is.is_covered && python == OP_PYTHON_MODE;
    is.formula = NULL;
    is.inputs = 0;
    int64_t place = entry_place(o, &is);
    if (place < 0)
        return (int)place;
    op->row = (uint32_t)place;
    return 0;
}

/*
 * Under a Python mode (FlopCounterMode, selective checkpointing) another operator runs the
 * requested one, or skips it; a subclass of Tensor runs others, as DTensor does for its shard. So
 * the requested operator has no FLOPs; with a subclass no operator around has, since inner sizes
 * differ.
 */
static int hand_to_python(struct op_report *o, const struct op *op)
{
    struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    enum op_python python = op_python_of(op->text);
    int error = 0;
    for (uint32_t i = stack->count; python && error == 0 && i-- > 0;) {
        struct op *around = &stack->open[i];
        if (around == op || !op_works(around))
            continue;
        error = hand_over(o, around, python);
        if (python == OP_PYTHON_MODE)
            break;
    }
    return error;
}

static int op_report_open_op(struct op_report *o, struct op *op)
{
    struct op *outer = op_report_around(o, op);
    int error = hand_to_python(o, op);
    struct op_row row = op_report_row_of(o, op, outer);
    int64_t place = error < 0 ? error : row_place(o, &row);
    if (place < 0)
        return (int)place;
    struct op_class is = class_of(o, op, outer, (uint32_t)place);
    place = entry_place(o, &is);
    if (place < 0)
        return (int)place;
    op->row = (uint32_t)place;
    o->has_ops[op->thread->index] = true;
    if (outer && row.table != OP_MODULES) {
        outer->inside++;
        outer->duplicate = op->text && op->text == outer->text ? op->row + 1 : 0;
    }
    return 0;
}

/* The entry of the innermost hook around a finished one; NULL if there is none. */
static struct op_entry *hook_around(struct op_report *o, const struct op *op)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    for (uint32_t i = stack->count; i-- > 0;) {
        const struct op *around = &stack->open[i];
        if (op_is_label(around) && !around->is_traced && around->number < op->number &&
            o->rows[o->entries[around->row].is.row].table == OP_HOOKS)
            return &o->entries[around->row];
    }
    return NULL;
}

static void count_op(struct op_report *o, const struct op *op)
{
    struct op_entry *entry = &o->entries[op->row];
    const struct op_class *is = &entry->is;
    struct op_row *row = &o->rows[is->row];
    uint64_t ns = op->end_ns - op->begin_ns;
    entry->calls++;
    row->values[OP_CALLS]++;
    row->values[OP_TOTAL] += ns;
    struct op_entry *outer = row->table == OP_HOOKS ? hook_around(o, op) : NULL;
    if (outer)
        outer->inner_ns += ns;
    if (row->table == OP_MODULES || row->table == OP_HOOKS)
        entry->ns += ns;
    else if (!op->is_moved && ns > op->inner_ns)
        row->values[OP_SELF] += ns - op->inner_ns;
    if (row->table == OP_MODULES && is->module)
        o->entries[is->module - 1].inner_ns += ns;
    if (is->is_backward)
        o->entries[is->backward_of - 1].backward_ns += ns;
    if (is->forward)
        o->rows[is->forward - 1].values[OP_BACKWARD] += ns;
    if (op->inside == 1 && op->duplicate)
        o->entries[op->duplicate - 1].duplicates++;
}

static int op_report_close_op(struct op_report *o, const struct slice *s)
{
    const struct op *op = s->op;
    uint32_t slot;
    if (!s->is_filtered)
        count_op(o, op);
    if (s->op_change != OP_CLOSED)
        return 0;
    int kept = op_pairs_keep(&o->pairs, op, o->walk->op_threads[op->thread->index], &slot);
    return kept < 0 ? kept : 0;
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
    struct op_row *row = &o->rows[is->row];
    /* An operator's or hook's work is not the own work of a label around it. */
    unsigned inner = row->table == OP_LABELS ? ~(1u << OP_MODULES) : 1u << row->table;
    row->values[OP_GPU] += c->ns;
    row->values[OP_GPU_SELF] += c->tables & inner ? 0 : c->ns;
    if (is->forward)
        o->rows[is->forward - 1].values[OP_BACKWARD_GPU] += c->ns;
    entry->device = c->device;
    entry->gpu_ns += c->ns;
    if (is->formula && !c->is_found)
        entry->found_ns += c->ns;
    c->is_found |= is->formula != NULL;
    if (is->backward_of && !c->is_backward)
        o->entries[is->backward_of - 1].backward_gpu_ns += c->ns;
    c->is_backward |= is->backward_of != 0;
    c->tables |= 1u << row->table;
    if (is->is_compiled && !c->label)
        c->label = row->text;
}

/* Adds work without an operator; `label` is that of compiled code around it, or NULL. */
static int add_none(struct op_report *o, const struct slice *s, const struct kernel_name *label)
{
    const struct record *r = s->event.record;
    const struct kernel_name *kernel = NULL;
    uint64_t why = label ? NONE_COMPILED : !s->is_called ? NONE_CALL : NONE_BETWEEN;
    if (why == NONE_BETWEEN && !o->has_ops[s->call.thread])
        why |= (s->call.thread + 1ull) << 32;
    if (!label && r->type == RECORD_KERNEL)
        kernel = walk_kernel(o->walk, s->event.process, record_arg(r, KERNEL_NAME_INDEX));
    return op_report_add_none(o, why, label ? label : kernel, 1,
                              s->event.end_ns - s->event.begin_ns);
}

/* Credits GPU work to all operators and labels that were open when its call began. */
static int op_report_take_work(void *context, const struct slice *s)
{
    struct op_report *o = context;
    struct credit c = {.ns = s->event.end_ns - s->event.begin_ns,
                       .device = record_arg(s->event.record, KERNEL_DEVICE)};
    struct op_place place = {.number = s->is_called ? s->call.op : 0};
    const struct op_node *node;
    int error = 0;
    if (s->is_filtered)
        return 0;
    while ((node = survey_op(&o->walk->survey, &s->call, &place, &error)))
        op_report_credit(o, &c, &o->entries[node->row]);
    if (error < 0 || is_in_op(&c))
        return error;
    int taken = graph_origins_work(&o->graphs, s);
    if (taken > 0) /* its owner is known at the end */
        return 0;
    return taken < 0 ? taken : add_none(o, s, c.label);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Stores the entries of all open operators for a captured call. */
static int keep_chain(struct op_report *o, const struct slice *s)
{
    struct op_stack *stack = ops_stack(&o->walk->ops, s->event.thread->index);
    uint32_t at = o->chains.count, count = 0;
    if (at + stack->count + 1 > CHAINS_MAX)
        return 0; /* then the graph will have more nodes than stored calls */
    for (uint32_t i = stack->count + 1; i-- > 0;) {
        struct op *op = i < stack->count ? &stack->open[i] : NULL;
        if (op && (op->is_traced || op_is_label(op)))
            continue;
        uint32_t word = !op ? 0 : op->row | (op->is_captured ? 0 : CHAIN_IS_FIRST);
        int error = ARRAY_PUSH(o->chains.words, o->chains.count, &word);
        if (error < 0)
            return error;
        if (op && !op->is_captured)
            o->entries[op->row].captured++;
        if (op)
            op->is_captured = true;
        count += op != NULL;
    }
    o->chains.words[at] = count;
    return graph_origins_capture(&o->graphs, s, at);
}

static int report_node(void *context, const struct graph_node *node, enum graph_origin origin,
                       uint32_t chain)
{
    struct op_report *o = context;
    struct credit c = {.ns = node->ns, .device = node->device};
    uint32_t count = origin == GRAPH_KNOWN ? o->chains.words[chain] : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = o->chains.words[chain + 1 + i];
        struct op_entry *entry = &o->entries[word & ~CHAIN_IS_FIRST];
        bool was_in_op = is_in_op(&c);
        entry->replays += word & CHAIN_IS_FIRST ? node->count : 0;
        op_report_credit(o, &c, entry);
        o->rows[entry->is.row].values[OP_GRAPH] += is_in_op(&c) && !was_in_op ? node->ns : 0;
    }
    const struct kernel_name *kernel =
        node->kernel ? walk_kernel(o->walk, node->process, node->kernel) : NULL;
    return is_in_op(&c) ? 0
                        : op_report_add_none(o, NONE_GRAPH | (uint64_t)origin << 8, kernel,
                                             node->count, node->ns);
}

/* ---- as a consumer --------------------------------------------------------------------------- */

static int op_report_take_slice(void *context, const struct slice *s)
{
    struct op_report *o = context;
    if (s->event.record->type == RECORD_CALL) {
        int error = graph_origins_wants(s) ? keep_chain(o, s) : 0;
        return error < 0 ? error : graph_origins_take(&o->graphs, s);
    }
    if (s->op_change == OP_SAME || s->op->is_traced)
        return 0;
    return s->op_change == OP_OPENED ? op_report_open_op(o, s->op) : op_report_close_op(o, s);
}

static int op_report_end(void *context)
{
    struct op_report *o = context;
    int error = graph_origins_report(&o->graphs, report_node, o);
    if (error == 0)
        error = op_report_complete(o);
    for (unsigned i = 0; error == 0 && i < OP_TABLES; i++)
        error = sums_finish(&o->sums[i]);
    return error;
}

static unsigned op_report_consumers(struct report *r, struct consumer *list)
{
    bool has_work = report_wants_steps(r) || recording_any(r->rec, process_expects_gpu);
    *list = (struct consumer){
        .context = r->ops,
        .needs = WALK_OPS | (r->request.by == BY_RANGE ? (unsigned)WALK_RANGES : 0) |
                 (has_work ? (unsigned)WALK_WORK : 0),
        .skips = WALK_SKIPS_PLAIN_CALLS | (has_work ? 0 : (unsigned)WALK_SKIPS_WORK),
        .sees_filtered = true, /* graphs come from captures */
        .take = op_report_take_slice,
        .take_work = op_report_take_work,
        .end = op_report_end};
    return 1;
}

const struct analysis ops_analysis = {ANALYSIS_STATE(ops),
                                      .uses = USE_EXPORT,
                                      .parts = REPORT_OPS,
                                      .begin = op_report_analysis_begin,
                                      .consumers = op_report_consumers,
                                      .release = op_report_analysis_release};
