/* SPDX-License-Identifier: Apache-2.0 */
#include "analyse/op_report.h"

#include <stdlib.h>
#include <string.h>

#include "analyse/report_make.h"
#include "base/array.h"
#include "error.h"
#include "model/op_stack.h"
#include "record/gpu_record.h"

#define CHAINS_MAX     (1u << 22) /* words */
#define CHAIN_IS_FIRST (1u << 31) /* beside an entry: of the operator's captured calls */

/* What an entry's key has of an operator, beside its process, name and inputs. */
enum context_bits { CONTEXT_KIND = 7, CONTEXT_OWN = 8, CONTEXT_COVERED = 16, CONTEXT_COUNT = 32 };

static int analysis_begin(struct report *r)
{
    struct op_report *o = r->ops;
    uint64_t more = recording_bytes(r->rec) / OP_ROW_BYTES;
    o->sums = &r->sums[ANALYSIS_ops_sums];
    o->by = r->wish.by;
    o->walk = r->walk.is_surveyed ? &o->own : &r->walk;
    if (r->walk.is_surveyed && walk_init(&o->own, r->rec) < 0)
        return GPUPROF_NO_MEMORY;
    o->rows_max = more < OP_ROWS_MAX - OP_ROWS_FREE ? OP_ROWS_FREE + (uint32_t)more : OP_ROWS_MAX;
    o->contexts.count_max = o->rows_max;
    graph_origins_init(&o->graphs, o->walk);
    for (unsigned i = 0; i < OP_TABLES; i++)
        o->sums[i].owner = o;
    return op_none_init(&o->none, o->walk);
}

bool op_report_has_more(const struct op_report *o)
{
    return o->entry_count >= o->rows_max || o->none.count >= OP_NONE_ROWS_MAX;
}

static void analysis_release(struct report *r)
{
    struct op_report *o = r->ops;
    free(o->rows);
    free(o->entries);
    free(o->chains);
    key_map_release(&o->row_places);
    key_map_release(&o->entry_places);
    key_map_release(&o->contexts);
    op_pairs_release(&o->pairs);
    graph_origins_release(&o->graphs);
    op_none_release(&o->none);
    if (o->own.rec)
        walk_release(&o->own);
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

/* All that is known of an operator as it opens. */
struct opening {
    struct op_row row;
    struct op_entry entry;
    struct key row_key;
    unsigned context; /* enum context_bits */
    bool is_lost;     /* there is no room for what is around it */
};

/* The innermost operator or label around it; NULL: there is none. */
static struct op *around(const struct op_report *o, const struct op *op)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    for (uint32_t i = stack->count; i-- > 0;)
        if (&stack->open[i] != op && !stack->open[i].is_traced && !op_is_module(&stack->open[i]))
            return &stack->open[i];
    return NULL;
}

/* A module is its own, and a backward operator's that of its forward one, for what is in it, too.
 */
static void find_module(const struct op_report *o, const struct op *op,
                        const struct forward_op *forward, const struct op_entry *outer,
                        struct op_entry *entry)
{
    const struct op *module = ops_module(&o->walk->ops, op);
    if (forward && o->entries[forward->row].module)
        entry->backward_of = o->entries[forward->row].module;
    else if (outer)
        entry->backward_of = outer->backward_of;
    entry->is_backward = entry->backward_of && !(outer && outer->backward_of);
    entry->module = module && !entry->backward_of ? module->row + 1 : 0;
}

/* The innermost label or range around an operator, which have numbers of one sequence. */
static void find_range(const struct op_report *o, const struct op *op, struct op_row *row)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    const struct range_stack *ranges = ranges_stack(&o->walk->ranges, op->thread->index);
    const struct range *range = NULL;
    const struct op *label = NULL;
    for (uint32_t i = ranges->count; !range && i-- > 0;)
        if (!ranges->open[i].is_op) /* those of emit_nvtx are in the other stack */
            range = &ranges->open[i];
    for (uint32_t i = stack->count; !label && i-- > 0;)
        if (op_is_label(&stack->open[i]) && !stack->open[i].is_traced)
            label = &stack->open[i];
    if (range && (!label || range->sequence > label->number)) {
        row->range = range->text;
    } else if (label) {
        row->range = label->text;
        row->range_name = label->text ? 0 : label->name;
    }
}

static bool is_compiled(const struct kernel_name *text)
{
    return text && (strstr(text->shown, "CompiledFxGraph") || strstr(text->shown, "inductor_") ||
                    strstr(text->shown, "Torch-Compiled Region"));
}

static void describe(struct op_report *o, const struct op *op, const struct op *outer,
                     struct opening *d)
{
    bool is_label = op_is_label(op), is_module = op_is_module(op);
    bool is_own = op->text && !op->name;
    const struct op_entry *outer_entry = outer ? &o->entries[outer->row] : NULL;
    const struct op_formula *formula = op_works(op) && op->text ? formula_of(o, op->text) : NULL;
    const struct forward_op *forward = op_pairs_find(&o->pairs, op, op->text);
    bool is_hook = is_label && op->text && op_hook_name(op->text);
    *d = (struct opening){.row = {.table = is_module  ? OP_MODULES
                                           : is_hook  ? OP_HOOKS
                                           : is_label ? OP_LABELS
                                                      : OP_OPERATORS,
                                  .text = op->text,
                                  .process = op->process,
                                  .name = op->name,
                                  .inputs = o->by == BY_SHAPE ? op->inputs : 0},
                          .entry = {.forward = forward ? o->entries[forward->row].row + 1 : 0,
                                    .formula = formula,
                                    .inputs = formula ? op->inputs : 0,
                                    .is_covered = outer_entry && outer_entry->counts,
                                    .is_compiled = is_label && is_compiled(op->text)}};
    d->entry.counts = d->entry.is_covered || (formula && op_formula_is_counted(formula));
    find_module(o, op, forward, outer_entry, &d->entry);
    if (o->by == BY_STACK && outer && !is_module)
        d->row.parent = o->entries[outer->row].row + 1;
    if (o->by == BY_RANGE && d->row.table == OP_OPERATORS)
        find_range(o, op, &d->row);
    d->context = (unsigned)d->row.table | (is_own ? CONTEXT_OWN : 0);
    d->row_key = (struct key){(uint64_t)op->process->index, is_own ? (uintptr_t)op->text : op->name,
                              d->row.inputs};
}

/* The number of a context that few operators have: the same for the same words. 0: no room. */
static int64_t context_number(struct op_report *o, struct key key)
{
    uint64_t number = key_map_get(&o->contexts, key);
    if (number)
        return (int64_t)number;
    int error = key_map_set(&o->contexts, key, o->contexts.count + 1ull);
    return error == GPUPROF_LIMIT ? 0 : error < 0 ? error : (int64_t)o->contexts.count;
}

/* Of a row: what is around it, by stack or by range. */
static int64_t row_context(struct op_report *o, const struct op_row *row)
{
    if (!row->parent && !row->range_name && !row->range)
        return 0;
    if (row->parent)
        return context_number(o, (struct key){1, row->parent, 0});
    if (row->range)
        return context_number(o, (struct key){2, (uintptr_t)row->range, 0});
    return context_number(o, (struct key){3, row->range_name, row->process->index});
}

static struct key with_context(struct key key, unsigned bits, int64_t number)
{
    key.a |= ((uint64_t)number * CONTEXT_COUNT + bits) << 32;
    return key;
}

static int64_t row_place(struct op_report *o, struct key key, const struct op_row *made)
{
    uint64_t place = key_map_get(&o->row_places, key);
    if (place)
        return (int64_t)place - 1;
    if (!ARRAY_ROOM(o->rows, o->count, o->capacity, 64))
        return GPUPROF_NO_MEMORY;
    o->rows[o->count] = *made;
    if (key_map_set(&o->row_places, key, ++o->count) < 0)
        return GPUPROF_NO_MEMORY; /* there are fewer rows than a map has room for */
    return o->count - 1;
}

/* The entry of that key, a new one like `made` perhaps, for the row of `row_key`. */
static int64_t entry_place(struct op_report *o, struct key key, struct key row_key,
                           const struct opening *d)
{
    uint64_t place = key_map_get(&o->entry_places, key);
    if (place)
        return (int64_t)place - 1;
    struct op_row others = {.table = d->row.table, .is_others = true};
    bool is_full = d->is_lost || (o->count >= o->rows_max && !key_map_get(&o->row_places, row_key));
    if (is_full) /* all of these are one */
        key = row_key = (struct key){UINT64_MAX, (uint64_t)d->row.table, 0};
    if (is_full && (place = key_map_get(&o->entry_places, key)))
        return (int64_t)place - 1;
    int64_t row = row_place(o, row_key, is_full ? &others : &d->row);
    if (row < 0 || !ARRAY_ROOM(o->entries, o->entry_count, o->entry_capacity, 64))
        return GPUPROF_NO_MEMORY;
    o->entries[o->entry_count] = is_full ? (struct op_entry){0} : d->entry;
    o->entries[o->entry_count].row = (uint32_t)row;
    if (key_map_set(&o->entry_places, key, ++o->entry_count) < 0)
        return GPUPROF_NO_MEMORY; /* as above */
    return o->entry_count - 1;
}

static bool has_more(const struct op_entry *entry)
{
    return entry->forward || entry->module || entry->backward_of;
}

/* Of an entry: the same and its forward operator and module. `group` if that is all, or for lack of
 * room; or an error. */
static int64_t more_context(struct op_report *o, const struct op_entry *entry, int64_t group)
{
    int64_t number = group;
    if (entry->forward)
        number = context_number(o, (struct key){4, (uint64_t)group, entry->forward});
    if (number < 0 || (entry->forward && !number))
        return number < 0 ? number : group;
    uint64_t module =
        (uint64_t)entry->module << 33 | (uint64_t)entry->backward_of << 1 | entry->is_backward;
    if (module)
        number = context_number(o, (struct key){5, (uint64_t)number, module});
    return number ? number : group;
}

/* The operator gets another entry of its row: what it was called for is done by others. */
static int hand_over(struct op_report *o, struct op *op, enum op_python python)
{
    struct op_entry made = o->entries[op->row];
    struct key key = {UINT64_MAX - 1, op->row, python};
    uint64_t place = key_map_get(&o->entry_places, key);
    bool is_covered = made.is_covered && python == OP_PYTHON_MODE;
    if ((!made.formula && made.counts == is_covered) ||
        (!place && o->entry_count >= 2 * o->rows_max))
        return 0;
    if (!place) {
        if (!ARRAY_ROOM(o->entries, o->entry_count, o->entry_capacity, 64))
            return GPUPROF_NO_MEMORY;
        o->entries[o->entry_count] = (struct op_entry){.row = made.row,
                                                       .forward = made.forward,
                                                       .module = made.module,
                                                       .backward_of = made.backward_of,
                                                       .is_backward = made.is_backward,
                                                       .is_covered = is_covered,
                                                       .counts = is_covered};
        place = ++o->entry_count;
        if (key_map_set(&o->entry_places, key, place) < 0)
            return GPUPROF_NO_MEMORY; /* as above */
    }
    op->row = (uint32_t)place - 1;
    return 0;
}

/*
 * A mode of Python's (FlopCounterMode, selective checkpointing) runs the operator that it is asked
 * for, or does not; a subclass of Tensor runs others: a DTensor its own part's. So who asked has no
 * FLOPs; of a subclass nobody around has, since sizes are others inside.
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

/* Where there is no room for more, an operator has its row still, and counts there as one whose
 * FLOPs and forward operator are not known. */
static int open_op(struct op_report *o, struct op *op)
{
    struct opening d;
    struct op *outer = around(o, op);
    int handed = hand_to_python(o, op);
    if (handed < 0)
        return handed;
    describe(o, op, outer, &d);
    op_none_sees(&o->none, op->thread);
    int64_t group = row_context(o, &d.row);
    if (group < 0)
        return (int)group;
    d.is_lost = !group && (d.row.parent || d.row.range || d.row.range_name);
    unsigned covered = d.context | (d.entry.is_covered ? CONTEXT_COVERED : 0);
    struct key row_key = with_context(d.row_key, d.context, group);
    struct key key = with_context(d.row_key, covered, group);
    int64_t number = more_context(o, &d.entry, group);
    if (number < 0)
        return (int)number;
    if (o->entry_count >= o->rows_max || (number == group && has_more(&d.entry))) {
        d.entry.forward = d.entry.module = d.entry.backward_of = 0;
        d.entry.inputs = 0;
        d.entry.is_backward = false;
    } else if (d.entry.inputs || has_more(&d.entry)) {
        key = with_context(d.row_key, covered, number);
        key.c = d.entry.inputs ? d.entry.inputs : key.c;
    }
    int64_t place = entry_place(o, key, row_key, &d);
    if (place < 0)
        return (int)place;
    op->row = (uint32_t)place;
    if (outer && d.row.table != OP_MODULES) {
        outer->inside++;
        outer->twin = op->text && op->text == outer->text ? op->row + 1 : 0;
    }
    return 0;
}

/* The entry of the innermost hook around one that has ended, or NULL. */
static struct op_entry *hook_around(struct op_report *o, const struct op *op)
{
    const struct op_stack *stack = ops_stack(&o->walk->ops, op->thread->index);
    for (uint32_t i = stack->count; i-- > 0;) {
        const struct op *around = &stack->open[i];
        if (op_is_label(around) && !around->is_traced && around->number < op->number &&
            o->rows[o->entries[around->row].row].table == OP_HOOKS)
            return &o->entries[around->row];
    }
    return NULL;
}

static void count_op(struct op_report *o, const struct op *op)
{
    struct op_entry *entry = &o->entries[op->row];
    struct op_row *row = &o->rows[entry->row];
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
    if (row->table == OP_MODULES && entry->module)
        o->entries[entry->module - 1].inner_ns += ns;
    if (entry->is_backward)
        o->entries[entry->backward_of - 1].backward_ns += ns;
    if (entry->forward)
        o->rows[entry->forward - 1].values[OP_BACKWARD] += ns;
    if (op->inside == 1 && op->twin)
        o->entries[op->twin - 1].twins++;
}

static int close_op(struct op_report *o, const struct slice *s)
{
    const struct op *op = s->op;
    uint32_t slot;
    if (!s->is_hidden)
        count_op(o, op);
    if (s->op_change != OP_CLOSED)
        return 0;
    int kept = op_pairs_keep(&o->pairs, op, o->walk->op_threads[op->thread->index], &slot);
    return kept < 0 ? kept : 0;
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Work, as it goes from the innermost of what it is in to the outermost. */
struct credit {
    uint64_t ns;
    uint64_t device;
    bool is_in_op;
    bool is_in_label; /* or operator */
    bool is_in_module;
    bool is_in_hook;
    bool is_backward;
    bool is_found;                   /* in one with a formula */
    const struct kernel_name *label; /* of compiled code */
};

static void credit(struct op_report *o, struct credit *c, struct op_entry *entry)
{
    struct op_row *row = &o->rows[entry->row];
    bool is_label = row->table == OP_LABELS, is_module = row->table == OP_MODULES;
    bool is_hook = row->table == OP_HOOKS;
    bool is_inner = is_module  ? c->is_in_module
                    : is_hook  ? c->is_in_hook
                    : is_label ? c->is_in_label || c->is_in_op
                               : c->is_in_op;
    row->values[OP_GPU] += c->ns;
    row->values[OP_GPU_SELF] += is_inner ? 0 : c->ns;
    if (entry->forward)
        o->rows[entry->forward - 1].values[OP_BACKWARD_GPU] += c->ns;
    entry->is_mixed |= entry->has_device && entry->device != c->device;
    entry->device = c->device;
    entry->has_device = true;
    entry->gpu_ns += c->ns;
    if (entry->formula && !c->is_found)
        entry->found_ns += c->ns;
    c->is_found |= entry->formula != NULL;
    if (entry->backward_of && !c->is_backward)
        o->entries[entry->backward_of - 1].backward_gpu_ns += c->ns;
    c->is_backward |= entry->backward_of != 0;
    c->is_in_op |= row->table == OP_OPERATORS;
    c->is_in_label |= !is_module;
    c->is_in_module |= is_module;
    c->is_in_hook |= is_hook;
    if (entry->is_compiled && !c->label)
        c->label = row->text;
}

/* GPU work is that of all operators and labels that were open when its call began. */
static int tied(void *context, const struct slice *s)
{
    struct op_report *o = context;
    struct credit c = {.ns = s->event.end_ns - s->event.begin_ns,
                       .device = record_arg(s->event.record, KERNEL_DEVICE)};
    struct op_place place = {.number = s->is_called ? s->call.op : 0};
    const struct op_node *node;
    int error = 0;
    if (!is_stream_work(s->event.record->type) || s->is_hidden)
        return 0;
    while ((node = survey_op(&o->walk->survey, &s->call, &place, &error)))
        credit(o, &c, &o->entries[node->row]);
    if (error < 0 || c.is_in_op)
        return error;
    int taken = graph_origins_work(&o->graphs, s);
    if (taken > 0) /* whose it is, is known at the end */
        return 0;
    return taken < 0 ? taken : op_none_add(&o->none, s, c.label);
}

/* ---- graphs ---------------------------------------------------------------------------------- */

/* Keeps the entries of all that is open: a call is captured in them. */
static int keep_chain(struct op_report *o, const struct slice *s)
{
    struct op_stack *stack = ops_stack(&o->walk->ops, s->event.thread->index);
    uint32_t at = o->chain_count, count = 0;
    if (at + stack->count + 1 > CHAINS_MAX)
        return 0; /* the nodes will be others than those of the calls that are kept */
    for (uint32_t i = stack->count + 1; i-- > 0;) {
        struct op *op = i < stack->count ? &stack->open[i] : NULL;
        if (op && (op->is_traced || op_is_label(op)))
            continue;
        if (!ARRAY_ROOM(o->chains, o->chain_count, o->chain_capacity, 256))
            return GPUPROF_NO_MEMORY;
        o->chains[o->chain_count++] = !op ? 0 : op->row | (op->is_captured ? 0 : CHAIN_IS_FIRST);
        if (op && !op->is_captured)
            o->entries[op->row].captured++;
        if (op)
            op->is_captured = true;
        count += op != NULL;
    }
    o->chains[at] = count;
    return graph_origins_capture(&o->graphs, s, at);
}

static int tell_node(void *context, const struct graph_node *node, enum graph_origin origin,
                     uint32_t chain)
{
    struct op_report *o = context;
    struct credit c = {.ns = node->ns, .device = node->device};
    uint32_t count = origin == GRAPH_KNOWN ? o->chains[chain] : 0;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t word = o->chains[chain + 1 + i];
        struct op_entry *entry = &o->entries[word & ~CHAIN_IS_FIRST];
        bool was_in_op = c.is_in_op;
        entry->replays += word & CHAIN_IS_FIRST ? node->count : 0;
        credit(o, &c, entry);
        o->rows[entry->row].values[OP_GRAPH] += c.is_in_op && !was_in_op ? node->ns : 0;
    }
    return c.is_in_op ? 0 : op_none_add_node(&o->none, node, origin);
}

/* ---- as a consumer --------------------------------------------------------------------------- */

static int take_slice(void *context, const struct slice *s)
{
    struct op_report *o = context;
    if (s->event.record->type == RECORD_CALL) {
        int error = graph_origins_wants(s) ? keep_chain(o, s) : 0;
        return error < 0 ? error : graph_origins_take(&o->graphs, s);
    }
    if (s->op_change == OP_SAME || s->op->is_traced)
        return 0;
    return s->op_change == OP_OPENED ? open_op(o, s->op) : close_op(o, s);
}

static int end(void *context)
{
    struct op_report *o = context;
    int error = graph_origins_tell(&o->graphs, tell_node, o);
    if (error == 0)
        error = op_none_complete(&o->none, &o->sums[OP_UNDER_NONE]);
    if (error == 0)
        error = op_report_complete(o);
    for (unsigned i = 0; error == 0 && i < OP_TABLES; i++)
        error = sums_finish(&o->sums[i]);
    return error;
}

static struct consumer consumer_of(const struct report *r)
{
    bool has_work = report_wants_steps(r) || recording_expects_gpu(r->rec);
    return (struct consumer){.context = r->ops,
                             .needs = WALK_OPS |
                                      (r->wish.by == BY_RANGE ? (unsigned)WALK_RANGES : 0) |
                                      (has_work ? (unsigned)WALK_WORK : 0),
                             .skips = WALK_SKIPS_PLAIN_CALLS | WALK_SKIPS_WORK,
                             .sees_hidden = true, /* captures, of which graphs were made */
                             .take = take_slice,
                             .tied = tied,
                             .end = end};
}

static unsigned consumers(struct report *r, struct consumer *list)
{
    *list = consumer_of(r);
    return r->ops->walk == &r->walk ? 1 : 0;
}

static int analysis_end(struct report *r)
{
    struct op_report *o = r->ops;
    struct consumer consumer = consumer_of(r);
    if (o->walk == &r->walk || report_parts_absent(r->rec) & REPORT_OPS)
        return 0;
    o->own.filter = r->walk.filter;
    return walk_run(&o->own, NULL, &consumer, 1);
}

const struct analysis ops_analysis = {ANALYSIS_STATE(ops),        .uses = USE_EXPORT,
                                      .parts = REPORT_OPS,        .begin = analysis_begin,
                                      .consumers = consumers,     .end = analysis_end,
                                      .release = analysis_release};
