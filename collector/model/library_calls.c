/* SPDX-License-Identifier: Apache-2.0 */
#include "model/library_calls.h"

#include <stdlib.h>
#include <string.h>

#include "error.h"

int library_calls_init(struct library_calls *l, struct recording *rec, const struct process *only,
                       struct library_kinds *kinds)
{
    *l = (struct library_calls){.kinds = kinds,
                                .first_thread = only ? only->first_thread : 0,
                                .thread_count = only ? only->thread_count : rec->thread_count};
    l->stacks = calloc(l->thread_count + 1u, sizeof *l->stacks);
    return l->stacks ? 0 : GPUPROF_NO_MEMORY;
}

void library_calls_release(struct library_calls *l)
{
    for (uint32_t i = 0; l->stacks && i < l->thread_count; i++)
        free(l->stacks[i].open);
    free(l->stacks);
    *l = (struct library_calls){0};
}

/* Takes out the innermost. */
static struct library_call *pop(struct library_calls *l, struct library_stack *stack)
{
    l->result = stack->open[--stack->count];
    return &l->result;
}

/* The place of the open call of that library, or stack->count. */
static uint32_t place_of(const struct library_stack *stack, unsigned domain)
{
    uint32_t at = 0;
    while (at < stack->count && stack->open[at].function->domain != domain)
        at++;
    return at;
}

static bool is_message(const struct function *f)
{
    return f->does == API_DOES_COLLECTIVE || f->does == API_DOES_P2P ||
           f->does == API_DOES_P2P_RECEIVE;
}

/* What a call of NCCL's that has ended means for those that are still to be done. */
static void queue(struct library_group *group, const struct library_call *call, uint64_t bytes)
{
    bool is_group = call->function->does == API_DOES_GROUP_END;
    if ((is_group || is_message(call->function)) && call->has_work)
        *group = (struct library_group){0};
    if (!is_message(call->function) || call->has_work)
        return;
    if (!group->calls++) {
        group->kind = call->kind;
        group->message = call->message;
    }
    if (__builtin_add_overflow(group->bytes, bytes, &group->bytes))
        group->bytes = 0;
}

static int open_call(struct library_calls *l, const struct event *e, struct library_call **call)
{
    struct library_stack *stack = library_stack(l, e->thread->index);
    const struct record *r = e->record;
    if (place_of(stack, e->function->domain) < stack->count) {
        *call = pop(l, stack);
        return LIBRARY_LEFT;
    }
    if (!stack->open)
        stack->open = calloc(LIBRARIES_OPEN_MAX, sizeof *stack->open);
    if (!stack->open || stack->count == LIBRARIES_OPEN_MAX)
        return GPUPROF_NO_MEMORY; /* the second cannot be: there are no more libraries */
    struct library_call *open = &stack->open[stack->count];
    *open = (struct library_call){.function = e->function,
                                  .process = e->process,
                                  .thread = e->thread,
                                  .begin_ns = e->begin_ns,
                                  .end_ns = e->begin_ns,
                                  .stack = r->stack_id,
                                  .arg_count = r->arg_count};
    memcpy(open->args, r->args, r->arg_count * sizeof *r->args);
    int64_t kind = library_kind_of(l->kinds, e, &open->message);
    if (kind < 0)
        return (int)kind;
    open->kind = (uint32_t)kind;
    stack->count++;
    *call = open;
    return LIBRARY_OPENED;
}

static int close_call(struct library_calls *l, const struct event *e, struct library_call **call)
{
    struct library_stack *stack = library_stack(l, e->thread->index);
    const struct record *r = e->record;
    uint32_t at = place_of(stack, e->function->domain);
    if (at == stack->count || stack->open[at].function != e->function)
        return LIBRARY_SAME;
    *call = pop(l, stack);
    if (at < stack->count)
        return LIBRARY_LEFT;
    struct library_call *closed = *call;
    closed->end_ns = e->begin_ns > closed->begin_ns ? e->begin_ns : closed->begin_ns;
    closed->result = r->result;
    for (unsigned i = 0; i < r->arg_count && i < RECORD_ARGS_MAX; i++)
        closed->args[i] |= r->args[i]; /* known at one end, and 0 at the other */
    closed->arg_count = r->arg_count > closed->arg_count ? r->arg_count : closed->arg_count;
    queue(&stack->group, closed, library_kind(l->kinds, closed->kind)->shape.bytes);
    return LIBRARY_CLOSED;
}

int library_calls_take(struct library_calls *l, const struct event *e, struct library_call **call)
{
    return e->record->type == RECORD_LIBRARY_BEGIN ? open_call(l, e, call) : close_call(l, e, call);
}

struct library_call *library_calls_leave(struct library_calls *l, const struct thread *thread,
                                         uint64_t begin_ns)
{
    struct library_stack *stack = library_stack(l, thread->index);
    bool is_left = stack->count && stack->open[stack->count - 1].begin_ns > begin_ns;
    return is_left ? pop(l, stack) : NULL;
}

void library_calls_see(struct library_calls *l, const struct event *e)
{
    struct library_stack *stack = library_stack(l, e->thread->index);
    unsigned class = e->function->class;
    bool is_work = class == API_LAUNCH || class == API_COPY || class == API_GRAPH_LAUNCH;
    for (uint32_t i = 0; i < stack->count; i++) {
        stack->open[i].has_work |= is_work;
        if (stack->open[i].end_ns < e->end_ns)
            stack->open[i].end_ns = e->end_ns;
    }
}

struct library_call *library_innermost(const struct library_calls *l, const struct thread *thread)
{
    const struct library_stack *stack = library_stack(l, thread->index);
    return stack->count ? &stack->open[stack->count - 1] : NULL;
}

int64_t library_call_kind(struct library_calls *l, const struct library_call *call,
                          struct library_message *message)
{
    const struct library_group *group = &library_stack(l, call->thread->index)->group;
    *message = call->message;
    if (call->function->does != API_DOES_GROUP_END || !group->calls)
        return call->kind;
    *message = group->message;
    if (group->calls == 1)
        return group->kind;
    *message = (struct library_message){0};
    return library_kind_of_group(l->kinds, call->function, group->calls, group->bytes);
}

struct library_call *library_calls_drain(struct library_calls *l, const uint64_t *last_ns)
{
    while (l->drained < l->thread_count && !l->stacks[l->drained].count)
        l->drained++;
    if (l->drained == l->thread_count)
        return NULL;
    struct library_call *call = pop(l, &l->stacks[l->drained]);
    uint64_t end_ns = last_ns[call->process->index];
    call->seen_ns = call->end_ns;
    call->end_ns = end_ns > call->begin_ns ? end_ns : call->begin_ns;
    return call;
}
