/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stack_costs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/unit_text.h"
#include "error.h"
#include "read/process_title.h"
#include "record/gpu_record.h"

#define TITLE_BYTES 1024

int stack_costs_init(struct stack_costs *s, struct survey *survey, const char *symbol_folder)
{
    struct recording *rec = survey->rec;
    *s = (struct stack_costs){.rec = rec, .survey = survey, .names = {.plain = true}};
    s->stackless = calloc(rec->count + 1u, sizeof *s->stackless);
    s->threads = calloc(rec->thread_count + 1u, sizeof(struct thread *));
    s->roots = calloc(rec->count + rec->thread_count + 1u, sizeof *s->roots);
    int error = ranges_init(&s->ranges, rec, NULL);
    if (error == 0)
        error = call_tree_init(&s->tree, survey, symbol_folder);
    if (!s->stackless || !s->threads || !s->roots)
        return GPUPROF_NO_MEMORY;
    for (uint32_t i = 0; i < rec->count; i++) {
        const struct thread_table *table = &rec->processes[i]->threads;
        for (uint32_t k = 0; k < table->count; k++)
            if (table->threads[k]->number && table->threads[k]->index < rec->thread_count)
                s->threads[table->threads[k]->index] = table->threads[k];
    }
    return error;
}

void stack_costs_release(struct stack_costs *s)
{
    call_tree_release(&s->tree);
    ranges_release(&s->ranges);
    kernel_names_release(&s->names);
    free(s->costs);
    free(s->stackless);
    free(s->threads);
    free(s->roots);
}

/* A node whose name is a text made here. */
static int named_child(struct stack_costs *s, uint32_t parent, enum shown_kind kind,
                       const char *name, uint32_t *node)
{
    struct shown_frame frame = {.kind = kind};
    int error = kernel_name_intern(&s->names, (const uint8_t *)name, strlen(name), &frame.name);
    return error < 0 ? error : call_tree_child(&s->tree, parent, &frame, node);
}

/* The node below which the stacks of that thread stand; 0: none. */
static int root_of(struct stack_costs *s, const struct process *p, uint32_t thread, uint32_t *node)
{
    char title[TITLE_BYTES];
    uint32_t *root = &s->roots[p->index];
    *node = 0;
    if (!s->split_processes)
        return 0;
    int error = 0;
    if (!*root) {
        process_title(p, true, title, sizeof title);
        error = named_child(s, 0, SHOWN_PROCESS, title, root);
    }
    *node = *root;
    if (error < 0 || !s->split_threads || thread >= s->rec->thread_count || !s->threads[thread])
        return error;
    root = &s->roots[s->rec->count + thread];
    if (!*root) {
        snprintf(title, sizeof title, "%s (thread %u)", s->threads[thread]->name,
                 s->threads[thread]->tid);
        error = named_child(s, *node, SHOWN_THREAD, title, root);
    }
    *node = *root;
    return error;
}

/* The cost that is counted at the node of a call; NULL: an error in *error. */
static struct stack_cost *cost_at(struct stack_costs *s, uint32_t node, int *error)
{
    uint32_t *number = &s->tree.nodes[node - 1].cost;
    if (!*number) {
        struct stack_cost *costs =
            array_room(s->costs, s->cost_count, &s->cost_capacity, sizeof *costs, 256);
        if (!costs) {
            *error = GPUPROF_NO_MEMORY;
            return NULL;
        }
        s->costs = costs;
        costs[s->cost_count] = (struct stack_cost){0};
        *number = ++s->cost_count;
    }
    return &s->costs[*number - 1];
}

/* The cost of calls of that function with that stack, or of those without one. */
static struct stack_cost *cost_of_call(struct stack_costs *s, const struct process *p,
                                       uint32_t thread, uint32_t stack,
                                       const struct kernel_name *range, const char *function,
                                       uint32_t *node, int *error)
{
    uint32_t root;
    *node = 0;
    if (stack && (*error = root_of(s, p, thread, &root)) == 0)
        *error = call_tree_stack(&s->tree, root, p->index, stack, range, node);
    if (*error == 0 && *node)
        *error = named_child(s, *node, SHOWN_CALL, function, node);
    if (*error < 0)
        return NULL;
    return *node ? cost_at(s, *node, error) : &s->stackless[p->index];
}

static uint64_t allocated_bytes(const struct event *e)
{
    uint64_t bytes = 0;
    if (e->function->class != API_ALLOC || e->record->result)
        return 0;
    for (unsigned i = 0; i < e->record->arg_count && i < e->function->arg_count; i++)
        if (e->function->args[i].kind == API_BYTES)
            bytes += e->record->args[i];
    return bytes;
}

static int take_call(struct stack_costs *s, const struct event *e)
{
    const struct record *r = e->record;
    const struct range *range = ranges_innermost(&s->ranges, e->thread, false);
    uint64_t weight = r->weight > 1 ? r->weight : 1;
    uint32_t node;
    int error = 0;
    if (r->flags & RECORD_NESTED)
        return 0;
    struct stack_cost *cost =
        cost_of_call(s, e->process, e->thread->index, r->stack_id, range ? range->text : NULL,
                     e->function->name, &node, &error);
    if (!cost)
        return error;
    uint64_t ns = e->end_ns - e->begin_ns;
    cost->calls += weight;
    cost->open += r->flags & RECORD_OPEN ? weight : 0;
    cost->host_ns += ns * weight;
    cost->max_ns = ns > cost->max_ns ? ns : cost->max_ns;
    cost->bytes += allocated_bytes(e) * weight;
    return 0;
}

/* A node for the work below that of its call. */
static int split(struct stack_costs *s, const struct event *e, uint32_t *node)
{
    const struct record *r = e->record;
    char title[GPU_TITLE_BYTES];
    struct shown_frame frame = {.kind = SHOWN_WORK};
    switch (r->type) {
    case RECORD_KERNEL:
        frame.name = survey_kernel(e->process, record_arg(r, KERNEL_NAME_INDEX));
        if (frame.name)
            return call_tree_child(&s->tree, *node, &frame, node);
        snprintf(title, sizeof title, "kernel %llu",
                 (unsigned long long)record_arg(r, KERNEL_NAME_INDEX));
        break;
    case RECORD_COPY:
        copy_title(record_arg(r, COPY_KIND), record_arg(r, COPY_SOURCE),
                   record_arg(r, COPY_DESTINATION), title);
        break;
    case RECORD_SET: set_title(record_arg(r, SET_KIND), title); break;
    default:
        snprintf(title, sizeof title, "CUDA graph %llu",
                 (unsigned long long)record_arg(r, GRAPH_GRAPH));
        break;
    }
    return named_child(s, *node, SHOWN_WORK, title, node);
}

static int take_work(struct stack_costs *s, const struct event *e)
{
    struct correlated_call call = {0};
    const struct range_node *range = NULL;
    const struct function_table *functions = &s->rec->reader.functions;
    int error = 0;
    int found = correlation_find(&s->survey->calls, e->process->index, e->record->correlation,
                                 e->begin_ns, CORRELATION_MATCHED, &call);
    if (found < 0)
        return found;
    if (found && call.range && !(range = survey_range(s->survey, call.range, &error)))
        return error;
    const struct kernel_name *text = range ? range->text : NULL;
    uint32_t node;
    const char *name =
        found && call.function < functions->count ? functions->functions[call.function]->name : "?";
    struct stack_cost *cost =
        cost_of_call(s, e->process, call.thread, found ? call.stack : 0, text, name, &node, &error);
    if (cost && node && s->split_work && (error = split(s, e, &node)) == 0)
        cost = cost_at(s, node, &error);
    if (!cost || error < 0)
        return error;
    cost->works++;
    cost->gpu_ns += e->end_ns - e->begin_ns;
    return 0;
}

int stack_costs_take(struct stack_costs *s, const struct event *e)
{
    struct range *range;
    if (e->record->type == RECORD_CALL)
        return take_call(s, e);
    if (is_stream_work(e->record->type))
        return take_work(s, e);
    int change = ranges_take(&s->ranges, e, &range);
    return change < 0 ? change : 0;
}

struct stack_cost stack_cost_of(const struct stack_costs *s, uint32_t node)
{
    uint32_t number = call_tree_node(&s->tree, node)->cost;
    return number ? s->costs[number - 1] : (struct stack_cost){0};
}

void stack_cost_add(struct stack_cost *to, const struct stack_cost *more)
{
    to->calls += more->calls;
    to->open += more->open;
    to->host_ns += more->host_ns;
    to->max_ns = more->max_ns > to->max_ns ? more->max_ns : to->max_ns;
    to->works += more->works;
    to->gpu_ns += more->gpu_ns;
    to->bytes += more->bytes;
}

struct stack_cost stack_costs_without(const struct stack_costs *s)
{
    struct stack_cost sum = {0};
    for (uint32_t i = 0; i < s->rec->count; i++)
        stack_cost_add(&sum, &s->stackless[i]);
    return sum;
}

/* A call's stack is taken when it returns: only then is it known to be a slow one. */
char *stack_costs_reason(const struct stack_cost *without, char *text)
{
    char count[UNIT_TEXT_BYTES];
    if (without->open && without->open == without->calls)
        snprintf(text, NO_STACK_BYTES, "not returned");
    else if (without->open)
        snprintf(text, NO_STACK_BYTES,
                 "below the threshold, not asked for, lost, or not returned (%s)",
                 count_text(count, without->open));
    else
        snprintf(text, NO_STACK_BYTES, "below the threshold, not asked for, or lost");
    return text;
}

int stack_costs_show_stackless(struct stack_costs *s)
{
    const struct shown_frame frame = {.kind = SHOWN_STACKLESS};
    int error = 0;
    for (uint32_t i = 0; error == 0 && i < s->rec->count; i++) {
        uint32_t node;
        if (!s->stackless[i].calls && !s->stackless[i].works)
            continue;
        error = root_of(s, s->rec->processes[i], UINT32_MAX, &node);
        if (error == 0)
            error = call_tree_child(&s->tree, node, &frame, &node);
        struct stack_cost *cost = error == 0 && node ? cost_at(s, node, &error) : NULL;
        if (cost)
            stack_cost_add(cost, &s->stackless[i]);
    }
    return error;
}
