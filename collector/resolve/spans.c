/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/memory.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/range_text.h"

void spans_init(struct spans *s, struct recording *rec, const struct process *only,
                struct kernel_names *texts, struct losses *losses, struct library_kinds *kinds)
{
    *s = (struct spans){.texts = texts,
                        .losses = losses,
                        .kinds = kinds,
                        .first_thread = only ? only->first_thread : 0,
                        .thread_count = only ? only->thread_count : rec->thread_count};
    uint64_t open_max = SPANS_OPEN_FREE + recording_bytes(rec) / SPANS_OPEN_BYTES;
    s->begun.count_max = (uint32_t)min_of(open_max, KEY_MAP_MAX);
    s->stacks = memory_new(s->thread_count + 1u, sizeof *s->stacks);
    s->numbers = memory_new(rec->count + 1u, sizeof *s->numbers);
}

void spans_release(struct spans *s)
{
    for (uint32_t i = 0; i < s->thread_count; i++)
        free(s->stacks[i].open);
    free(s->stacks);
    free(s->numbers);
    key_map_release(&s->labels);
    key_map_release(&s->begun);
    *s = (struct spans){0};
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Whether it is the function that evaluates the backward operator with that name. */
static bool is_evaluation(const struct host_span *around, const struct kernel_name *text)
{
    static const char evaluates[] = RANGE_OP_EVALUATES;
    return around->text && text &&
           strncmp(around->text->raw, evaluates, sizeof evaluates - 1) == 0 &&
           strcmp(around->text->raw + sizeof evaluates - 1, text->raw) == 0;
}

/* Gives the evaluation of a backward operator that one's numbers, like PyTorch's own traces. */
static void number_evaluation(struct host_span *around, const struct host_span *op)
{
    if (op->scope == OP_SCOPE_BACKWARD && !around->sequence && is_evaluation(around, op->text)) {
        around->sequence = op->sequence;
        around->forward_thread = op->forward_thread;
    }
}

static enum span_change spans_push(struct spans *s, const struct host_span *made,
                                   struct host_span **span)
{
    struct span_stack *stack = span_stack(s, made->thread->index);
    struct host_span *around =
        made->type == SPAN_OP ? spans_innermost(s, made->thread, SPAN_OP) : NULL;
    if (around)
        number_evaluation(around, made);
    (void)ARRAY_ROOM(stack->open, stack->count, stack->capacity, 8);
    *span = &stack->open[stack->count++];
    **span = *made;
    stack->counts[made->type]++;
    return SPAN_OPENED;
}

static struct host_span *spans_take_out(struct spans *s, struct host_span *span, uint64_t end_ns)
{
    struct span_stack *stack = span_stack(s, span->thread->index);
    size_t inside = (size_t)(&stack->open[stack->count] - span) - 1;
    s->result = *span;
    s->result.end_ns = max_of(end_ns, span->begin_ns);
    memmove(span, span + 1, inside * sizeof *span);
    stack->count--;
    stack->counts[s->result.type]--;
    return &s->result;
}

/*
 * Subtracts the time of an ended operator from the own time of the innermost one around it that is
 * still open. Operators inside one, which end in sequence, begin in sequence, too, or one would
 * contain the other. An operator that moved to another thread did not keep its first thread busy.
 */
static void credit(struct spans *s, const struct host_span *op)
{
    struct host_span *around = spans_innermost(s, op->thread, SPAN_OP);
    if (op->type != SPAN_OP || op->is_traced || op->is_moved)
        return;
    while (around && (around->number > op->number || around->is_traced))
        around = spans_around(s, around);
    if (!around)
        return;
    uint64_t from_ns = max_of(op->begin_ns, around->inner_end_ns);
    around->inner_ns += op->end_ns > from_ns ? op->end_ns - from_ns : 0;
    around->inner_end_ns = op->end_ns;
}

static enum span_change spans_close(struct spans *s, struct host_span *open, uint64_t end_ns,
                                    struct host_span **span)
{
    *span = spans_take_out(s, open, end_ns);
    credit(s, *span);
    return SPAN_CLOSED;
}

/* ---- free ranges and operators --------------------------------------------------------------- */

/* Finds the open one with that object and forgets its thread; NULL: there is none. */
static struct host_span *find_begun(struct spans *s, const struct process *p, enum span_type type,
                                    uint64_t object)
{
    struct key key = {p->index, object, type};
    uint64_t thread = key_map_get(&s->begun, key);
    const struct span_stack *stack = thread ? span_stack(s, (uint32_t)thread - 1) : NULL;
    if (thread)
        key_map_remove(&s->begun, key);
    for (uint32_t i = stack ? stack->count : 0; i-- > 0;) {
        struct host_span *span = &stack->open[i];
        if (span->type == type && !span->nested && span->object == object)
            return span;
    }
    return NULL;
}

/* Counts an end without a begin, or a begin without an end. */
static enum span_change count_unmatched(struct spans *s, const struct process *p,
                                        enum span_type type)
{
    struct losses *losses = &s->losses[p->index];
    *(type == SPAN_OP ? &losses->unmatched_ops : &losses->unmatched_ranges) += 1;
    return SPAN_SAME;
}

/* Pushes a range or operator, if there is room. */
static enum span_change spans_open(struct spans *s, struct host_span *made, struct host_span **span)
{
    const struct process *p = made->process;
    struct span_stack *stack = span_stack(s, made->thread->index);
    bool is_deep = stack->count >= SPANS_DEPTH_MAX || (made->nested && stack->beyond);
    s->losses[p->index].traced_ops += made->type == SPAN_OP && made->is_traced;
    if (!is_deep && !made->nested)
        is_deep = key_map_set(&s->begun, (struct key){p->index, made->object, made->type},
                              made->thread->index + 1ull) < 0;
    if (is_deep) {
        stack->beyond += made->nested;
        *(made->type == SPAN_OP ? &s->losses[p->index].deep_ops
                                : &s->losses[p->index].deep_ranges) += 1;
        return SPAN_SAME;
    }
    return spans_push(s, made, span);
}

static enum span_change spans_end(struct spans *s, const struct event *e, enum span_type type,
                                  uint64_t object, struct host_span **span)
{
    struct host_span *open = find_begun(s, e->process, type, object);
    if (!open)
        return count_unmatched(s, e->process, type);
    if (type == SPAN_OP)
        open->is_moved = e->thread != open->thread;
    return spans_close(s, open, e->begin_ns, span);
}

/* ---- ranges ---------------------------------------------------------------------------------- */

static struct key label_key(const struct process *p, uint64_t kind, uint64_t domain,
                            uint64_t handle)
{
    return (struct key){(uint64_t)p->index << 32 | (uint32_t)kind, domain, handle};
}

const struct kernel_name *spans_label(const struct spans *s, const struct process *p, uint64_t kind,
                                      uint64_t domain, uint64_t handle)
{
    return (const struct kernel_name *)(uintptr_t)key_map_get(&s->labels,
                                                              label_key(p, kind, domain, handle));
}

/* The text of a record; NULL: none. */
static const struct kernel_name *own_text(struct spans *s, const struct record *r)
{
    return r->byte_count ? kernel_name_intern(s->texts, r->bytes, r->byte_count) : NULL;
}

static enum span_change take_label(struct spans *s, const struct event *e)
{
    const struct record *r = e->record;
    const struct kernel_name *text = own_text(s, r);
    if (text)
        key_map_set(&s->labels,
                    label_key(e->process, record_arg(r, LABEL_KIND), record_arg(r, LABEL_DOMAIN),
                              record_arg(r, LABEL_HANDLE)),
                    (uintptr_t)text);
    return SPAN_SAME;
}

/* The name of a domain: its label, which is in the default domain or in the domain itself, or its
 * number. */
static const struct kernel_name *domain_text(struct spans *s, const struct process *p,
                                             uint64_t domain)
{
    char text[40];
    const struct kernel_name *label = spans_label(s, p, LABEL_OF_DOMAIN, 0, domain)
                                          ?: spans_label(s, p, LABEL_OF_DOMAIN, domain, domain);
    int length = snprintf(text, sizeof text, "domain %llu", (unsigned long long)domain);
    return label || !domain ? label : kernel_name_intern(s->texts, text, (size_t)length);
}

/* Makes an operator of a range. Each has a unique text, by its number, so only the name is stored.
 * Scope and is_traced follow from the text and the operator around. */
static void fill_nvtx_op(struct spans *s, const struct event *e, const struct range_op *parsed,
                         struct host_span *op)
{
    const struct host_span *around = spans_innermost(s, e->thread, SPAN_OP);
    *op = (struct host_span){.begin_ns = e->begin_ns,
                             .domain = op->domain,
                             .object = parsed->id,
                             .process = e->process,
                             .thread = e->thread,
                             .text =
                                 kernel_name_intern(s->texts, e->record->bytes, parsed->name_bytes),
                             .type = SPAN_OP,
                             .nested = true,
                             .sequence = parsed->sequence,
                             .is_nvtx = true};
    s->losses[e->process->index].nvtx_ops++;
    if (parsed->is_label)
        op->scope = OP_SCOPE_LABEL;
    else if (around && around->is_nvtx && is_evaluation(around, op->text))
        op->scope = OP_SCOPE_BACKWARD;
    op->is_traced = (around && around->is_traced) ||
                    (op->text && range_op_begins_trace(op->text->raw, op->text->raw_bytes));
}

/* Whether the range duplicates a recorded library call: libraries also push an NVTX range with the
 * name of the function. */
static bool is_duplicate(const struct spans *s, const struct host_span *range)
{
    const struct host_span *call = spans_innermost(s, range->thread, SPAN_LIBRARY);
    return call && range->nested && range->text &&
           strcmp(range->text->raw, call->function->symbol) == 0;
}

/* Reads the attributes of a push, a mark, or, one argument later, a start. */
static void fill_range(struct spans *s, const struct event *e, struct host_span *range)
{
    const struct record *r = e->record;
    unsigned first = r->type == RECORD_RANGE_START ? 1 : 0;
    uint64_t domain = record_arg(r, first + PUSH_DOMAIN), message;
    *range = (struct host_span){
        .begin_ns = e->begin_ns,
        .end_ns = e->begin_ns,
        .domain = domain,
        .object = first ? record_arg(r, RANGE_START_RANGE) : 0,
        .process = e->process,
        .thread = e->thread,
        .nested = !first,
        .domain_text = domain_text(s, e->process, domain),
        .category = record_arg(r, first + PUSH_CATEGORY),
        .color = record_arg(r, first + PUSH_COLOR),
        .payload_type = record_arg(r, first + PUSH_PAYLOAD_TYPE),
        .payload = record_arg(r, first + PUSH_PAYLOAD),
        .schema = record_arg(r, first + PUSH_SCHEMA),
        .data_bytes = record_arg(r, first + PUSH_DATA_BYTES),
    };
    for (unsigned i = 0; i < RANGE_DATA_WORDS && range->schema; i++)
        range->data[i] = record_arg(r, first + PUSH_DATA + i);
    struct range_op op;
    if (r->type == RECORD_PUSH && r->byte_count &&
        range_text_op((const char *)r->bytes, r->byte_count, &op)) {
        if (!process_has(e->process, "pytorch")) {
            fill_nvtx_op(s, e, &op, range);
            return;
        }
        s->losses[e->process->index].nvtx_ops_again++;
    }
    range->text = own_text(s, r);
    if (!r->byte_count && (message = record_arg(r, first + PUSH_MESSAGE)))
        range->text = spans_label(s, e->process, LABEL_OF_STRING, domain, message);
    range->is_duplicate = r->type == RECORD_PUSH && is_duplicate(s, range);
}

static enum span_change open_range(struct spans *s, const struct event *e, struct host_span **span)
{
    struct host_span made;
    fill_range(s, e, &made);
    made.number = ++s->numbers[e->process->index];
    return spans_open(s, &made, span);
}

static enum span_change mark(struct spans *s, const struct event *e, struct host_span **span)
{
    fill_range(s, e, &s->result);
    *span = &s->result;
    return SPAN_MARKED;
}

/* A pop ends the innermost nested range of its domain. */
static enum span_change pop_range(struct spans *s, const struct event *e, struct host_span **span)
{
    struct span_stack *stack = span_stack(s, e->thread->index);
    uint64_t domain = record_arg(e->record, POP_DOMAIN);
    if (stack->beyond) {
        stack->beyond--;
        return SPAN_SAME;
    }
    for (uint32_t i = stack->count; i-- > 0;)
        if (stack->open[i].nested && stack->open[i].domain == domain)
            return spans_close(s, &stack->open[i], e->begin_ns, span);
    return count_unmatched(s, e->process, SPAN_RANGE);
}

/* ---- operators ------------------------------------------------------------------------------- */

_Static_assert((unsigned)OP_BEGIN_OP == (unsigned)OP_END_OP, "both begin with their object");

static enum span_change open_op(struct spans *s, const struct event *e,
                                const struct kernel_handles *names, struct host_span **span)
{
    const struct record *r = e->record;
    struct host_span made = {.begin_ns = e->begin_ns,
                             .end_ns = e->begin_ns,
                             .object = record_arg(r, OP_BEGIN_OP),
                             .process = e->process,
                             .thread = e->thread,
                             .stack = r->stack_id,
                             .type = SPAN_OP,
                             .name = record_arg(r, OP_BEGIN_NAME),
                             .inputs = record_arg(r, OP_BEGIN_INPUTS),
                             .sequence = record_arg(r, OP_BEGIN_SEQUENCE),
                             .forward_thread = record_arg(r, OP_BEGIN_FORWARD_THREAD),
                             .scope = r->code,
                             .is_traced = r->flags & RECORD_TRACED};
    struct host_span *lost = find_begun(s, e->process, SPAN_OP, made.object);
    if (lost) { /* each object has one operator at a time, so an end is missing */
        count_unmatched(s, e->process, SPAN_OP);
        *span = spans_take_out(s, lost, e->begin_ns);
        return SPAN_LOST;
    }
    made.text = made.name ? kernel_name_of(names, made.name) : own_text(s, r);
    made.number = ++s->numbers[e->process->index];
    return spans_open(s, &made, span);
}

/* ---- calls of libraries ---------------------------------------------------------------------- */

/* The thread's open call of that library, or NULL. */
static const struct host_span *call_of(const struct spans *s, const struct event *e)
{
    const struct host_span *call = spans_innermost(s, e->thread, SPAN_LIBRARY);
    while (call && call->function->domain != e->function->domain)
        call = spans_around(s, call);
    return call;
}

static enum span_change open_call(struct spans *s, const struct event *e, struct host_span **span)
{
    const struct record *r = e->record;
    struct host_span *inner = spans_innermost(s, e->thread, SPAN_LIBRARY);
    if (call_of(s, e)) {
        *span = spans_take_out(s, inner, inner->end_ns);
        return SPAN_LOST;
    }
    struct host_span made = {.begin_ns = e->begin_ns,
                             .end_ns = e->begin_ns,
                             .process = e->process,
                             .thread = e->thread,
                             .stack = r->stack_id,
                             .type = SPAN_LIBRARY,
                             .function = e->function,
                             .arg_count = r->arg_count};
    memcpy(made.args, r->args, r->arg_count * sizeof *r->args);
    made.kind = library_kind_of(s->kinds, e, &made.message, &made.stream);
    return spans_push(s, &made, span);
}

static enum span_change close_call(struct spans *s, const struct event *e, struct host_span **span)
{
    const struct record *r = e->record;
    const struct host_span *own = call_of(s, e);
    struct host_span *call = spans_innermost(s, e->thread, SPAN_LIBRARY);
    if (!own || own->function != e->function)
        return SPAN_SAME;
    bool is_own = call == own;
    call = *span = spans_take_out(s, call, is_own ? e->begin_ns : call->end_ns);
    if (!is_own)
        return SPAN_LOST;
    call->result = r->result;
    for (unsigned i = 0; i < r->arg_count && i < RECORD_ARGS_MAX; i++)
        call->args[i] |= r->args[i]; /* each is known at one end only, and 0 at the other */
    call->arg_count = r->arg_count > call->arg_count ? r->arg_count : call->arg_count;
    library_group_add(&span_stack(s, e->thread->index)->group, s->kinds, call->kind, &call->message,
                      call->stream, call->has_work);
    return SPAN_CLOSED;
}

void spans_see_call(struct spans *s, const struct event *e)
{
    struct host_span *call = spans_innermost(s, e->thread, SPAN_LIBRARY);
    unsigned class = e->function->class;
    for (; call; call = spans_around(s, call)) {
        call->has_work |= class == API_LAUNCH || class == API_COPY || class == API_GRAPH_LAUNCH;
        call->end_ns = max_of(call->end_ns, e->end_ns);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

enum span_change spans_take(struct spans *s, const struct event *e,
                            const struct kernel_handles *op_names, struct host_span **span)
{
    const struct record *r = e->record;
    switch (r->type) {
    case RECORD_PUSH:
    case RECORD_RANGE_START: return open_range(s, e, span);
    case RECORD_POP: return pop_range(s, e, span);
    case RECORD_RANGE_END: return spans_end(s, e, SPAN_RANGE, record_arg(r, RANGE_END_RANGE), span);
    case RECORD_LABEL: return take_label(s, e);
    case RECORD_MARK: return mark(s, e, span);
    case RECORD_OP_BEGIN: return open_op(s, e, op_names, span);
    case RECORD_OP_END: return spans_end(s, e, SPAN_OP, record_arg(r, OP_END_OP), span);
    case RECORD_LIBRARY_BEGIN: return open_call(s, e, span);
    case RECORD_LIBRARY_END: return close_call(s, e, span);
    default: return SPAN_SAME;
    }
}

struct host_span *spans_around(const struct spans *s, const struct host_span *span)
{
    struct span_stack *stack = span_stack(s, span->thread->index);
    for (struct host_span *around = &stack->open[span - stack->open]; around-- > stack->open;)
        if (around->type == span->type)
            return around;
    return NULL;
}

const struct host_span *spans_innermost_op(const struct spans *s, const struct thread *thread)
{
    const struct host_span *op = spans_innermost(s, thread, SPAN_OP);
    while (op && !op_works(op))
        op = spans_around(s, op);
    return op;
}

const struct host_span *spans_with_stack(const struct spans *s, const struct thread *thread)
{
    const struct span_stack *stack = span_stack(s, thread->index);
    for (uint32_t i = 0; i < stack->count && stack->counts[SPAN_OP]; i++)
        if (stack->open[i].type == SPAN_OP && stack->open[i].stack)
            return &stack->open[i];
    return NULL;
}

const struct host_span *spans_module(const struct spans *s, const struct host_span *op)
{
    const struct host_span *around = spans_innermost(s, op->thread, SPAN_OP);
    while (around && (!op_is_module(around) || around->is_traced || around->number >= op->number))
        around = spans_around(s, around);
    return around;
}

struct host_span *spans_drain(struct spans *s, uint32_t thread_index, enum span_type type,
                              const uint64_t *last_ns)
{
    const struct span_stack *stack = span_stack(s, thread_index);
    struct host_span *span = stack->count ? spans_innermost(s, stack->open->thread, type) : NULL;
    if (!span)
        return NULL;
    uint64_t seen_ns = span->end_ns;
    spans_close(s, span, last_ns[span->process->index], &span);
    if (type == SPAN_LIBRARY)
        span->seen_ns = seen_ns;
    return span;
}
