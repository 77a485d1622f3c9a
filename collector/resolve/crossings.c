/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/crossings.h"

void crossings_init(struct crossings *c)
{
    spool_init(&c->rows, sizeof(struct crossing));
}

void crossings_release(struct crossings *c)
{
    spool_release(&c->rows);
}

static void begin(struct span_stack *stack, struct host_span *span, const struct event *e)
{
    bool is_label = span->type == SPAN_OP && op_is_label(span);
    uint8_t bit = (uint8_t)(1u << (is_label ? (unsigned)SPAN_TYPES : span->type));
    span->entry = e->entry;
    span->is_kept = !(stack->seen & bit);
    stack->seen |= bit;
}

void crossings_keep(struct span_stack *stack)
{
    for (uint32_t i = 0; i < stack->count; i++)
        stack->open[i].is_kept = true;
}

void crossings_take(struct crossings *c, struct span_stack *stack, struct host_span *span,
                    enum span_change change, const struct event *e)
{
    bool is_op = span->type == SPAN_OP, is_left = change == SPAN_LEFT;
    if (change == SPAN_OPENED)
        begin(stack, span, e);
    if (change == SPAN_OPENED || change == SPAN_MARKED ||
        (!is_left && !span->is_kept && span->entry == e->entry))
        return;
    const struct crossing row = {.process = span->process,
                                 .begin_ns = span->begin_ns,
                                 .end_ns = is_left ? UINT64_MAX : e->begin_ns,
                                 .inner_ns = is_op ? span->inner_ns : 0,
                                 .thread = span->thread->number,
                                 .ended_by = e->thread->number,
                                 .inside = is_op ? span->inside : 0,
                                 .has_work = span->type == SPAN_LIBRARY && span->has_work,
                                 .is_kept = span->is_kept};
    c->is_unusable |= change == SPAN_LOST;
    spool_append(&c->rows, &row);
}
