/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/range_stack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/range_text.h"

int ranges_init(struct ranges *r, struct recording *rec, const struct process *only,
                struct kernel_names *texts, struct losses *losses)
{
    *r = (struct ranges){.rec = rec,
                         .texts = texts,
                         .losses = losses,
                         .first_thread = only ? only->first_thread : 0,
                         .thread_count = only ? only->thread_count : rec->thread_count};
    r->stacks = calloc(r->thread_count + 1u, sizeof *r->stacks);
    r->sequences = calloc(rec->count + 1u, sizeof *r->sequences);
    return r->stacks && r->sequences ? 0 : GPUPROF_NO_MEMORY;
}

void ranges_release(struct ranges *r)
{
    for (uint32_t i = 0; r->stacks && i < r->thread_count; i++)
        free(r->stacks[i].open);
    free(r->stacks);
    free(r->sequences);
    key_map_release(&r->labels);
    key_map_release(&r->started);
    *r = (struct ranges){0};
}

static struct key label_key(const struct process *p, uint64_t kind, uint64_t domain,
                            uint64_t handle)
{
    return (struct key){(uint64_t)p->index << 32 | (uint32_t)kind, domain, handle};
}

const struct kernel_name *ranges_label(const struct ranges *r, const struct process *p,
                                       uint64_t kind, uint64_t domain, uint64_t handle)
{
    return (const struct kernel_name *)(uintptr_t)key_map_get(&r->labels,
                                                              label_key(p, kind, domain, handle));
}

/* The text of a record, or of the registered string that it refers to. */
static int range_stack_text_of(struct ranges *r, const struct event *e, uint64_t domain,
                               uint64_t message, const struct kernel_name **text)
{
    *text = NULL;
    if (e->record->byte_count)
        return kernel_name_intern(r->texts, e->record->bytes, e->record->byte_count, text);
    if (message)
        *text = ranges_label(r, e->process, LABEL_OF_STRING, domain, message);
    return 0;
}

static int range_stack_take_label(struct ranges *r, const struct event *e)
{
    const struct kernel_name *text;
    const struct record *record = e->record;
    int error = range_stack_text_of(r, e, 0, 0, &text);
    if (error < 0 || !text)
        return error;
    error =
        key_map_set(&r->labels,
                    label_key(e->process, record_arg(record, LABEL_KIND),
                              record_arg(record, LABEL_DOMAIN), record_arg(record, LABEL_HANDLE)),
                    (uintptr_t)text);
    return error == GPUPROF_NO_MEMORY ? error : 0;
}

/* Each operator has a unique text, by its number, so only the name is stored. */
static int fill_op(struct ranges *r, const struct range_op *op, const uint8_t *text,
                   struct range *range)
{
    r->losses[range->process->index].nvtx_ops++;
    range->is_op = true;
    range->is_label = op->is_label;
    range->op_id = op->id;
    range->op_sequence = op->sequence;
    return kernel_name_intern(r->texts, text, op->name_bytes, &range->text);
}

/* Names the domain of a range: by its label, which is in the default domain or in the domain
 * itself, or by its number. */
static int name_domain(struct ranges *r, struct range *range)
{
    char text[40];
    const struct process *p = range->process;
    if (!range->domain)
        return 0;
    range->domain_text = ranges_label(r, p, LABEL_OF_DOMAIN, 0, range->domain);
    if (!range->domain_text)
        range->domain_text = ranges_label(r, p, LABEL_OF_DOMAIN, range->domain, range->domain);
    if (range->domain_text)
        return 0;
    int length = snprintf(text, sizeof text, "domain %llu", (unsigned long long)range->domain);
    return kernel_name_intern(r->texts, (const uint8_t *)text, (size_t)length, &range->domain_text);
}

/* Reads the attributes of a push, a mark, or, one argument later, a start. */
static int range_stack_fill(struct ranges *r, const struct event *e, unsigned first,
                            struct range *range)
{
    const struct record *record = e->record;
    *range = (struct range){
        .begin_ns = e->begin_ns,
        .end_ns = e->begin_ns,
        .domain = record_arg(record, first + PUSH_DOMAIN),
        .category = record_arg(record, first + PUSH_CATEGORY),
        .color = record_arg(record, first + PUSH_COLOR),
        .payload_type = record_arg(record, first + PUSH_PAYLOAD_TYPE),
        .payload = record_arg(record, first + PUSH_PAYLOAD),
        .schema = record_arg(record, first + PUSH_SCHEMA),
        .data_bytes = record_arg(record, first + PUSH_DATA_BYTES),
        .process = e->process,
        .thread = e->thread,
        .nested = first == 0,
    };
    for (unsigned i = 0; i < RANGE_DATA_WORDS && range->schema; i++)
        range->data[i] = record_arg(record, first + PUSH_DATA + i);
    struct range_op op;
    int error = name_domain(r, range);
    if (error < 0)
        return error;
    if (record->type == RECORD_PUSH && record->byte_count &&
        range_text_op((const char *)record->bytes, record->byte_count, &op)) {
        if (!process_has(e->process, "pytorch"))
            return fill_op(r, &op, record->bytes, range);
        r->losses[e->process->index].nvtx_ops_again++;
    }
    return range_stack_text_of(r, e, range->domain, record_arg(record, first + PUSH_MESSAGE),
                               &range->text);
}

static int open_range(struct ranges *r, const struct event *e, bool nested, struct range **out)
{
    struct range_stack *stack = ranges_stack(r, e->thread->index);
    struct range made;
    int error = range_stack_fill(r, e, nested ? 0 : 1, &made);
    if (error < 0)
        return error;
    made.sequence = ++r->sequences[e->process->index];
    if (stack->count == RANGES_DEPTH_MAX) {
        stack->beyond += nested;
        r->losses[e->process->index].deep_ranges++;
        return RANGE_NONE;
    }
    if (!nested) {
        made.number = record_arg(e->record, RANGE_START_RANGE);
        struct key key = {e->process->index, made.number, 0};
        error = key_map_set(&r->started, key, (uint64_t)e->thread->index + 1);
        if (error < 0)
            return error == GPUPROF_NO_MEMORY ? error : RANGE_NONE;
    }
    if (!ARRAY_ROOM(stack->open, stack->count, stack->capacity, 8))
        return GPUPROF_NO_MEMORY;
    stack->open[stack->count] = made;
    *out = &stack->open[stack->count++];
    return RANGE_OPENED;
}

static int close_at(struct ranges *r, struct range_stack *stack, uint32_t at, uint64_t end_ns,
                    struct range **out)
{
    r->result = stack->open[at];
    r->result.end_ns = end_ns > r->result.begin_ns ? end_ns : r->result.begin_ns;
    memmove(stack->open + at, stack->open + at + 1, (stack->count - at - 1) * sizeof *stack->open);
    stack->count--;
    *out = &r->result;
    return RANGE_CLOSED;
}

/* A pop ends the innermost nested range of its domain. */
static int range_stack_pop(struct ranges *r, const struct event *e, struct range **out)
{
    struct range_stack *stack = ranges_stack(r, e->thread->index);
    uint64_t domain = record_arg(e->record, POP_DOMAIN);
    if (stack->beyond) {
        stack->beyond--;
        return RANGE_NONE;
    }
    for (uint32_t i = stack->count; i-- > 0;)
        if (stack->open[i].nested && stack->open[i].domain == domain)
            return close_at(r, stack, i, e->begin_ns, out);
    r->losses[e->process->index].unmatched_ranges++;
    return RANGE_NONE;
}

/* Ends a free range; the record may come from any thread of the process. */
static int end_range(struct ranges *r, const struct event *e, struct range **out)
{
    uint64_t number = record_arg(e->record, RANGE_END_RANGE);
    struct key key = {e->process->index, number, 0};
    uint64_t thread = key_map_get(&r->started, key);
    if (!thread) {
        r->losses[e->process->index].unmatched_ranges++;
        return RANGE_NONE;
    }
    key_map_remove(&r->started, key);
    struct range_stack *stack = ranges_stack(r, (uint32_t)thread - 1);
    for (uint32_t i = stack->count; i-- > 0;)
        if (!stack->open[i].nested && stack->open[i].number == number)
            return close_at(r, stack, i, e->begin_ns, out);
    return RANGE_NONE;
}

int ranges_take(struct ranges *r, const struct event *e, struct range **range)
{
    switch (e->record->type) {
    case RECORD_PUSH: return open_range(r, e, true, range);
    case RECORD_POP: return range_stack_pop(r, e, range);
    case RECORD_RANGE_START: return open_range(r, e, false, range);
    case RECORD_RANGE_END: return end_range(r, e, range);
    case RECORD_LABEL: return range_stack_take_label(r, e);
    case RECORD_MARK: {
        int error = range_stack_fill(r, e, 0, &r->result);
        *range = &r->result;
        return error < 0 ? error : RANGE_MARKED;
    }
    default: return RANGE_NONE;
    }
}

struct range *ranges_innermost(struct ranges *r, const struct thread *thread, bool nested)
{
    struct range_stack *stack = ranges_stack(r, thread->index);
    for (uint32_t i = stack->count; i-- > 0;)
        if (!stack->open[i].is_op && (!nested || stack->open[i].nested))
            return &stack->open[i];
    return NULL;
}

struct range *ranges_drain(struct ranges *r, uint32_t thread_index, const uint64_t *last_ns)
{
    struct range *range;
    struct range_stack *stack = ranges_stack(r, thread_index);
    if (!stack->count)
        return NULL;
    close_at(r, stack, stack->count - 1, last_ns[stack->open[stack->count - 1].process->index],
             &range);
    return range;
}
