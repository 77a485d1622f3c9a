/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/op_stack.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/range_text.h"

int ops_init(struct ops *o, struct recording *rec, const struct process *only,
             struct kernel_names *texts, struct losses *losses)
{
    *o = (struct ops){.rec = rec,
                      .texts = texts,
                      .losses = losses,
                      .first_thread = only ? only->first_thread : 0,
                      .thread_count = only ? only->thread_count : rec->thread_count};
    uint64_t open_max = OPS_OPEN_FREE + recording_bytes(rec) / OPS_OPEN_BYTES;
    o->begun.count_max = open_max < KEY_MAP_MAX ? (uint32_t)open_max : KEY_MAP_MAX;
    o->stacks = calloc(o->thread_count + 1u, sizeof *o->stacks);
    return o->stacks ? 0 : GPUPROF_NO_MEMORY;
}

void ops_release(struct ops *o)
{
    for (uint32_t i = 0; o->stacks && i < o->thread_count; i++)
        free(o->stacks[i].open);
    free(o->stacks);
    key_map_release(&o->begun);
    *o = (struct ops){0};
}

_Static_assert((unsigned)OP_BEGIN_OP == (unsigned)OP_END_OP, "both begin with their object");

static struct key object_key(const struct event *e)
{
    return (struct key){e->process->index, record_arg(e->record, OP_END_OP), 0};
}

static void op_stack_take_out(struct ops *o, struct op_stack *stack, uint32_t at)
{
    o->result = stack->open[at];
    memmove(stack->open + at, stack->open + at + 1, (stack->count - at - 1) * sizeof *stack->open);
    stack->count--;
}

/* Removes the open operator with that object from its stack; false: it is in none. */
static bool op_stack_find(struct ops *o, const struct event *e, uint64_t thread)
{
    struct op_stack *stack = ops_stack(o, (uint32_t)thread - 1);
    for (uint32_t i = stack->count; i-- > 0;) {
        if (stack->open[i].object == record_arg(e->record, OP_END_OP)) {
            op_stack_take_out(o, stack, i);
            return true;
        }
    }
    return false;
}

static int op_stack_fill(const struct ops *o, const struct event *e,
                         const struct op_numbers *numbers, struct op *op)
{
    const struct record *r = e->record;
    *op = (struct op){.name = record_arg(r, OP_BEGIN_NAME),
                      .inputs = record_arg(r, OP_BEGIN_INPUTS),
                      .object = record_arg(r, OP_BEGIN_OP),
                      .sequence = record_arg(r, OP_BEGIN_SEQUENCE),
                      .forward_thread = record_arg(r, OP_BEGIN_FORWARD_THREAD),
                      .begin_ns = e->begin_ns,
                      .end_ns = e->begin_ns,
                      .process = e->process,
                      .thread = e->thread,
                      .stack = r->stack_id,
                      .scope = r->code,
                      .is_traced = r->flags & RECORD_TRACED};
    if (!op->name && r->byte_count)
        return kernel_name_intern(o->texts, r->bytes, r->byte_count, &op->text);
    op->text = op->name ? kernel_name_of(&numbers->names, op->name) : NULL;
    return 0;
}

/* Whether it is the function that evaluates the backward operator with that name. */
static bool is_evaluation(const struct op *around, const struct kernel_name *text)
{
    static const char evaluates[] = RANGE_OP_EVALUATES;
    return around->text && text &&
           strncmp(around->text->raw, evaluates, sizeof evaluates - 1) == 0 &&
           strcmp(around->text->raw + sizeof evaluates - 1, text->raw) == 0;
}

/* Gives the evaluation of a backward operator that one's numbers, like PyTorch's own traces. */
static void number_evaluation(struct op *around, const struct op *made)
{
    if (made->scope == OP_SCOPE_BACKWARD && !around->sequence &&
        is_evaluation(around, made->text)) {
        around->sequence = made->sequence;
        around->forward_thread = made->forward_thread;
    }
}

static int op_stack_push(struct ops *o, const struct op *made, struct op **out)
{
    struct op_stack *stack = ops_stack(o, made->thread->index);
    if (stack->count)
        number_evaluation(&stack->open[stack->count - 1], made);
    if (!ARRAY_ROOM(stack->open, stack->count, stack->capacity, 8))
        return GPUPROF_NO_MEMORY;
    stack->open[stack->count] = *made;
    *out = &stack->open[stack->count++];
    return OP_OPENED;
}

static int op_stack_open_op(struct ops *o, const struct event *e, const struct op_numbers *numbers,
                            uint32_t *sequence, struct op **out)
{
    struct op_stack *stack = ops_stack(o, e->thread->index);
    struct losses *losses = &o->losses[e->process->index];
    struct op made;
    int error = op_stack_fill(o, e, numbers, &made);
    if (error < 0)
        return error;
    made.number = ++*sequence;
    losses->traced_ops += made.is_traced;
    uint64_t before = key_map_get(&o->begun, object_key(e));
    if (before) { /* each object has one operator at a time, so an end is missing */
        losses->unmatched_ops++;
        o->is_replaced = op_stack_find(o, e, before);
        o->result.end_ns = e->begin_ns; /* unused if it was not found */
    }
    error = stack->count == OPS_DEPTH_MAX
                ? GPUPROF_LIMIT
                : key_map_set(&o->begun, object_key(e), (uint64_t)e->thread->index + 1);
    losses->deep_ops += error == GPUPROF_LIMIT;
    if (error < 0)
        return error == GPUPROF_LIMIT ? OP_SAME : error;
    return op_stack_push(o, &made, out);
}

/* Subtracts the time of an ended operator from the own time of the innermost one around it that
 * is still open. Operators inside one, which end in sequence, begin in sequence, too, or one
 * would contain the other. An operator that moved to another thread did not keep its first
 * thread busy. */
static void op_stack_credit(struct ops *o, const struct op *op)
{
    struct op_stack *stack = ops_stack(o, op->thread->index);
    if (op->is_traced || op->is_moved)
        return;
    for (uint32_t i = stack->count; i-- > 0;) {
        struct op *around = &stack->open[i];
        if (around->number > op->number || around->is_traced)
            continue;
        uint64_t from_ns =
            op->begin_ns > around->inner_end_ns ? op->begin_ns : around->inner_end_ns;
        around->inner_ns += op->end_ns > from_ns ? op->end_ns - from_ns : 0;
        around->inner_end_ns = op->end_ns;
        return;
    }
}

static int op_stack_close_op(struct ops *o, const struct event *e, struct op **out)
{
    uint64_t thread = key_map_get(&o->begun, object_key(e));
    if (!thread)
        o->losses[e->process->index].unmatched_ops++;
    else
        key_map_remove(&o->begun, object_key(e));
    if (!thread || !op_stack_find(o, e, thread))
        return OP_SAME;
    struct op *op = &o->result;
    op->end_ns = e->begin_ns > op->begin_ns ? e->begin_ns : op->begin_ns;
    op->is_moved = e->thread != op->thread;
    op_stack_credit(o, op);
    *out = op;
    return OP_CLOSED;
}

int ops_take(struct ops *o, const struct event *e, const struct op_numbers *numbers,
             uint32_t *sequence, struct op **op)
{
    o->is_replaced = false;
    return e->record->type == RECORD_OP_BEGIN ? op_stack_open_op(o, e, numbers, sequence, op)
                                              : op_stack_close_op(o, e, op);
}

/* ---- operators of emit_nvtx ------------------------------------------------------------------ */

/* Derives scope and is_traced from the text and the operator around. */
static void find_kind(const struct op *around, const struct range *range, struct op *op)
{
    if (range->is_label)
        op->scope = OP_SCOPE_LABEL;
    else if (around && around->is_nvtx && is_evaluation(around, range->text))
        op->scope = OP_SCOPE_BACKWARD;
    op->is_traced =
        (around && around->is_traced) ||
        (range->text && range_op_begins_trace(range->text->raw, range->text->raw_bytes));
}

int ops_open_range(struct ops *o, const struct range *range, struct op **op)
{
    const struct op_stack *stack = ops_stack(o, range->thread->index);
    struct losses *losses = &o->losses[range->process->index];
    struct op made = {.text = range->text,
                      .object = range->op_id,
                      .sequence = range->op_sequence,
                      .begin_ns = range->begin_ns,
                      .end_ns = range->begin_ns,
                      .process = range->process,
                      .thread = range->thread,
                      .number = range->sequence,
                      .is_nvtx = true};
    if (stack->count == OPS_DEPTH_MAX) { /* only if PyTorch's operators were recorded, too */
        losses->deep_ops++;
        return OP_SAME;
    }
    find_kind(stack->count ? &stack->open[stack->count - 1] : NULL, range, &made);
    losses->traced_ops += made.is_traced;
    return op_stack_push(o, &made, op);
}

int ops_close_range(struct ops *o, const struct range *range, struct op **op)
{
    struct op_stack *stack = ops_stack(o, range->thread->index);
    uint32_t at = stack->count;
    while (at > 0 && stack->open[at - 1].number != range->sequence)
        at--;
    if (!at)
        return OP_SAME;
    op_stack_take_out(o, stack, at - 1);
    o->result.end_ns = range->end_ns;
    op_stack_credit(o, &o->result);
    *op = &o->result;
    return OP_CLOSED;
}

/* ---- queries --------------------------------------------------------------------------------- */

const struct op *ops_with_stack(const struct ops *o, const struct thread *thread)
{
    const struct op_stack *stack = ops_stack(o, thread->index);
    uint32_t i = 0;
    while (i < stack->count && !stack->open[i].stack)
        i++;
    return i < stack->count ? &stack->open[i] : NULL;
}

const struct op *ops_innermost(const struct ops *o, const struct thread *thread)
{
    const struct op_stack *stack = ops_stack(o, thread->index);
    for (uint32_t i = stack->count; i-- > 0;)
        if (op_works(&stack->open[i]))
            return &stack->open[i];
    return NULL;
}

const struct op *ops_module(const struct ops *o, const struct op *op)
{
    const struct op_stack *stack = ops_stack(o, op->thread->index);
    for (uint32_t i = stack->count; i-- > 0;)
        if (op_is_module(&stack->open[i]) && !stack->open[i].is_traced &&
            stack->open[i].number < op->number)
            return &stack->open[i];
    return NULL;
}

struct op *ops_drain(struct ops *o, uint32_t thread_index, const uint64_t *last_ns)
{
    struct op_stack *stack = ops_stack(o, thread_index);
    if (!stack->count)
        return NULL;
    op_stack_take_out(o, stack, stack->count - 1);
    uint64_t end_ns = last_ns[o->result.process->index];
    o->result.end_ns = end_ns > o->result.begin_ns ? end_ns : o->result.begin_ns;
    op_stack_credit(o, &o->result);
    return &o->result;
}

/* ---- names ----------------------------------------------------------------------------------- */

enum op_kind op_kind_of(unsigned scope, const struct kernel_name *text)
{
    static const struct {
        const char *prefix;
        bool is_label;
        enum op_kind kind;
    } kinds[] = {
        {OP_OPTIMIZER_PREFIX, true, OP_KIND_OPTIMIZER},
        {"Optimizer.zero_grad#", true, OP_KIND_ZERO_GRAD},
        {OP_PROFILER_PREFIX, true, OP_KIND_PROFILER},
        {"enumerate(DataLoader)#", true, OP_KIND_LOADER},
        /* Without PyTorch's layout, scopes are not known either. */
        {"autograd::engine::", false, OP_KIND_BACKWARD},
    };
    if (scope == OP_SCOPE_BACKWARD)
        return OP_KIND_BACKWARD;
    for (size_t i = 0; text && i < sizeof kinds / sizeof kinds[0]; i++)
        if (kinds[i].is_label == (scope == OP_SCOPE_LABEL) &&
            strncmp(text->shown, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
            return kinds[i].kind;
    return OP_KIND_PLAIN;
}

enum op_python op_python_of(const struct kernel_name *text)
{
    const char *shown = text && text->shown[0] == 'P' ? text->shown : "";
    return strcmp(shown, "PythonDispatchMode") == 0 ? OP_PYTHON_MODE
           : strcmp(shown, "PythonSubclass") == 0   ? OP_PYTHON_SUBCLASS
                                                    : OP_PYTHON_NONE;
}

const char *op_hook_name(const struct kernel_name *text)
{
    size_t prefix = strlen(OP_HOOK_PREFIX);
    return strncmp(text->shown, OP_HOOK_PREFIX, prefix) == 0 ? text->shown + prefix : NULL;
}

/* ---- forward and backward operators ---------------------------------------------------------- */

/* Has the numbers of the operator that it evaluates; PyTorch's arrows lead to that one. */
#define EVALUATES "autograd::engine::evaluate_function"

void op_pairs_release(struct op_pairs *pairs)
{
    free(pairs->slots);
    *pairs = (struct op_pairs){0};
}

static uint32_t op_stack_slot_of(const struct forward_op *key)
{
    uint64_t hash = (key->process * 31ull + key->thread) * 0x9E3779B97F4A7C15u;
    return (uint32_t)(((hash >> 40) + key->sequence) % OP_PAIRS_MAX);
}

static bool op_stack_is_same(const struct forward_op *a, const struct forward_op *b)
{
    return a->number && a->process == b->process && a->thread == b->thread &&
           a->sequence == b->sequence;
}

int op_pairs_keep(struct op_pairs *pairs, const struct op *op, uint64_t thread, uint32_t *slot)
{
    struct forward_op made = {.process = op->process->index,
                              .thread = thread,
                              .sequence = op->sequence,
                              .number = op->number,
                              .begin_ns = op->begin_ns,
                              .row = op->row};
    if (!op->sequence || !thread || op->forward_thread || op_is_label(op) || op->is_traced)
        return 0;
    if (!pairs->slots)
        pairs->slots = calloc(OP_PAIRS_MAX, sizeof *pairs->slots);
    if (!pairs->slots)
        return GPUPROF_NO_MEMORY;
    *slot = op_stack_slot_of(&made);
    struct forward_op *kept = &pairs->slots[*slot];
    if (op_stack_is_same(kept, &made) && kept->number > made.number)
        return 0;
    *kept = made;
    return 1;
}

const struct forward_op *op_pairs_find(const struct op_pairs *pairs, const struct op *op,
                                       const struct kernel_name *name)
{
    struct forward_op key = {
        .process = op->process->index, .thread = op->forward_thread, .sequence = op->sequence};
    if (!pairs->slots || !op->sequence || !op->forward_thread || op->is_traced ||
        op->scope != OP_SCOPE_BACKWARD ||
        (name && strncmp(name->shown, EVALUATES, sizeof EVALUATES - 1) == 0))
        return NULL;
    const struct forward_op *found = &pairs->slots[op_stack_slot_of(&key)];
    return op_stack_is_same(found, &key) && found->begin_ns <= op->begin_ns ? found : NULL;
}
