/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/stack_costs.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "error.h"
#include "read/process.h"
#include "record/gpu_record.h"

#define TITLE_BYTES 1024

/* The wait of a thread that ends last, of those so far. */
struct open_wait {
    uint64_t end_ns;
    uint32_t row; /* number of the row; 0: no stack */
};

void stack_costs_init(struct stack_costs *s, struct walk *walk)
{
    struct recording *rec = walk->rec;
    *s = (struct stack_costs){.rec = rec, .walk = walk, .names = {.plain = true}};
    s->rows_max = call_tree_nodes_max(rec);
    s->stackless = memory_new(rec->count + 1u, sizeof *s->stackless);
    s->roots = memory_new(rec->count + rec->thread_count + 1u, sizeof *s->roots);
    s->pythonic = memory_new(rec->count + 1u, sizeof *s->pythonic);
    s->open = memory_new(rec->thread_count + 1u, sizeof *s->open);
    for (uint32_t i = 0; i < rec->count; i++)
        s->pythonic[i] = process_has(rec->processes[i], "python");
}

void stack_costs_release(struct stack_costs *s)
{
    call_tree_release(&s->tree);
    kernel_names_release(&s->names);
    number_set_release(&s->row_numbers);
    free(s->rows);
    free(s->costs);
    free(s->stackless);
    free(s->roots);
    free(s->pythonic);
    free(s->open);
}

/* ---- rows, during the walk ------------------------------------------------------------------- */

static const struct number_kind row_kind = NUMBER_KEY(struct stack_row, work);

/* Whether the range identifies the caller better than the stack. */
static bool reports_range(const struct stack_costs *s, const struct stack_row *row)
{
    const struct stack_table *table = &s->walk->survey.stacks;
    const struct recorded_stack *stack =
        s->pythonic[row->process] ? stack_table_stack(table, row->process, row->stack) : NULL;
    return s->pythonic[row->process] && !(stack && stack_table_has_python(table, stack));
}

/* Finds or adds the row. Returns its number; 0: it counts as without a stack. */
static uint32_t number_of_row(struct stack_costs *s, struct stack_row *wanted)
{
    if (!wanted->stack)
        return 0;
    if (wanted->range && !reports_range(s, wanted))
        wanted->range = NULL;
    int64_t number =
        NUMBER_ADD(&s->row_numbers, &row_kind, s->rows, s->row_count, s->rows_max, wanted);
    s->left_out += !number;
    return (uint32_t)number;
}

static struct stack_cost *numbered(struct stack_costs *s, uint32_t number, uint32_t process)
{
    return number ? &s->rows[number - 1].cost : &s->stackless[process];
}

/* The cost of the row, which is added if needed; a view. */
static struct stack_cost *cost_of_row(struct stack_costs *s, struct stack_row *wanted)
{
    return numbered(s, number_of_row(s, wanted), wanted->process);
}

/* ---- waits ---- */

/* The wait of the thread at that time; NULL: none. */
static struct open_wait *open_wait(struct stack_costs *s, const struct thread *t, uint64_t at_ns)
{
    struct open_wait *wait = t ? &s->open[t->index] : NULL;
    return wait && wait->end_ns > at_ns ? wait : NULL;
}

/* Subtracts time from a wait in which the thread ran, or waited in an inner wait. */
static void shorten(struct stack_costs *s, const struct open_wait *wait, uint32_t process,
                    uint64_t ns)
{
    struct stack_cost *cost = wait ? numbered(s, wait->row, process) : NULL;
    if (cost)
        cost->waited_ns -= ns < cost->waited_ns ? ns : cost->waited_ns;
}

/* Returns the number of its row. */
static uint32_t add_wait(struct stack_costs *s, struct stack_row *row, uint64_t ns)
{
    uint32_t number = number_of_row(s, row);
    struct stack_cost *cost = numbered(s, number, row->process);
    cost->waits++;
    cost->waited_ns += ns;
    return number;
}

/* Takes a system call, or a wait for the GIL. */
static void stack_costs_take_wait(struct stack_costs *s, const struct slice *slice)
{
    const struct event *e = &slice->event;
    const struct record *r = e->record;
    uint64_t ns = e->end_ns - e->begin_ns;
    struct stack_row row = {.process = e->process->index,
                            .thread = s->split_threads ? e->thread->index : 0,
                            .stack = r->stack_id,
                            .function = STACK_WAITED,
                            .work = {r->type, r->code}};
    if (r->type == RECORD_GIL && r->code != GIL_WAITED && r->code != GIL_STOPPED)
        return;
    uint32_t number = add_wait(s, &row, ns);
    const struct open_wait *around = open_wait(s, e->thread, e->begin_ns);
    if (around)
        shorten(s, around, row.process,
                ns < around->end_ns - e->begin_ns ? ns : around->end_ns - e->begin_ns);
    if (e->end_ns > s->open[e->thread->index].end_ns)
        s->open[e->thread->index] = (struct open_wait){e->end_ns, number};
}

/* The thread index for a row; UINT32_MAX if the thread recorded nothing itself. */
static uint32_t sampled_thread(const struct stack_costs *s, const struct host_sample *sample)
{
    return !s->split_threads ? 0 : sample->thread ? sample->thread->index : UINT32_MAX;
}

/* Counts a sample of a waiting thread, unless a record has the same wait. */
static void take_look(struct stack_costs *s, const struct slice *slice,
                      const struct host_sample *sample)
{
    uint32_t process = slice->event.process->index;
    bool waits = sample->holder || sample->syscall >= 0 || (sample->state && sample->state != 'R');
    struct stack_row row = {.process = process,
                            .thread = sampled_thread(s, sample),
                            .stack = sample->stack,
                            .function = STACK_WAITED,
                            .work = {RECORD_SAMPLE, sample->holder != 0}};
    if (waits && !open_wait(s, sample->thread, sample->at_ns))
        add_wait(s, &row, sample->ns);
}

/* Counts a sample. stack_costs_add_row decides later whether its time was Python's. */
static void stack_costs_take_sample(struct stack_costs *s, const struct slice *slice)
{
    struct host_sample sample;
    if (!host_sample(slice, &sample))
        return;
    if (s->has_waits && !sample.is_cpu)
        take_look(s, slice, &sample);
    else if (s->has_waits)
        shorten(s, open_wait(s, sample.thread, sample.at_ns), slice->event.process->index,
                sample.ns);
    if (!s->has_samples || !sample.is_cpu)
        return;
    struct stack_row row = {.process = slice->event.process->index,
                            .thread = sampled_thread(s, &sample),
                            .stack = sample.stack,
                            .function = STACK_SAMPLED};
    struct stack_cost *cost = cost_of_row(s, &row);
    cost->samples += sample.count;
    cost->cpu_ns += sample.ns;
    cost->time_ns[HOST_SYSTEM] += sample.in_kernel ? sample.ns : 0;
}

static int stack_costs_take_slice(void *context, const struct slice *slice)
{
    struct stack_costs *s = context;
    const struct event *e = &slice->event;
    const struct record *r = e->record;
    if (r->type == RECORD_SAMPLE)
        stack_costs_take_sample(s, slice);
    if ((r->type == RECORD_OS_CALL || r->type == RECORD_GIL) && s->has_waits)
        stack_costs_take_wait(s, slice);
    if (r->type != RECORD_CALL || r->flags & RECORD_NESTED)
        return 0;
    uint32_t stack = walk_stack(slice);
    const struct host_span *range = stack ? walk_range(slice) : NULL;
    struct stack_row row = {.process = e->process->index,
                            .thread = s->split_threads ? e->thread->index : 0,
                            .stack = stack,
                            .function = e->function->index,
                            .range = range ? range->text : NULL};
    uint64_t weight = r->weight > 1 ? r->weight : 1;
    struct stack_cost *cost = cost_of_row(s, &row);
    uint64_t ns = e->end_ns - e->begin_ns;
    cost->calls += weight;
    cost->host_ns += ns * weight;
    if (e->function->class == API_ALLOC && !r->result)
        cost->bytes += function_bytes(e->function, r) * weight;
    return 0;
}

/* Sets the parts of the title of the work. */
static void describe_work(struct stack_row *row, const struct record *r)
{
    row->work[0] = r->type;
    switch (r->type) {
    case RECORD_KERNEL: row->work[1] = record_arg(r, KERNEL_NAME_INDEX); break;
    case RECORD_COPY:
        row->work[1] = record_arg(r, COPY_KIND);
        row->work[2] = record_arg(r, COPY_SOURCE);
        row->work[3] = record_arg(r, COPY_DESTINATION);
        break;
    case RECORD_SET: row->work[1] = record_arg(r, SET_KIND); break;
    default: row->work[1] = record_arg(r, GRAPH_GRAPH); break;
    }
}

static int stack_costs_take_work(void *context, const struct slice *slice)
{
    struct stack_costs *s = context;
    const struct event *e = &slice->event;
    const struct correlated_call *call = &slice->call;
    struct stack_row row = {.process = e->process->index, .function = UINT32_MAX};
    if (slice->is_called && call->stack) {
        row.stack = call->stack;
        row.thread = s->split_threads ? call->thread : 0;
        row.function = call->function;
        const struct span_node *range = survey_innermost(&s->walk->survey, call, SPAN_RANGE);
        row.range = range ? range->text : NULL;
        if (s->split_work)
            describe_work(&row, e->record);
    }
    struct stack_cost *cost = cost_of_row(s, &row);
    cost->works++;
    cost->gpu_ns += e->end_ns - e->begin_ns;
    return 0;
}

struct consumer stack_costs_consumer(struct stack_costs *s)
{
    return (struct consumer){.context = s,
                             .needs = WALK_SPANS | WALK_WORK | WALK_STACKS,
                             .take = stack_costs_take_slice,
                             .take_work = stack_costs_take_work};
}

/* ---- tree, after the walk -------------------------------------------------------------------- */

/* Finds or adds a node with a name that was not recorded. */
static uint32_t named_child(struct stack_costs *s, uint32_t parent, enum shown_kind kind,
                            const char *name)
{
    const struct shown_frame frame = {.kind = kind,
                                      .name = kernel_name_intern(&s->names, name, strlen(name))};
    return call_tree_child(&s->tree, parent, &frame);
}

/* The node above the stacks of that thread; 0: none. */
static uint32_t root_of(struct stack_costs *s, const struct process *p, uint32_t thread)
{
    char title[TITLE_BYTES];
    uint32_t *root = &s->roots[p->index], node;
    if (!s->split_processes)
        return 0;
    if (!*root) {
        if (s->merges_ranks)
            process_program(p, title, sizeof title);
        else
            process_title(p, true, title, sizeof title);
        *root = named_child(s, 0, SHOWN_PROCESS, title);
    }
    node = *root;
    const struct thread *t =
        s->split_threads && thread != UINT32_MAX ? process_thread(p, thread) : NULL;
    if (!t || !t->number)
        return node;
    root = &s->roots[s->rec->count + thread];
    if (!*root) {
        if (s->merges_ranks)
            snprintf(title, sizeof title, "%s", t->name[0] ? t->name : "thread");
        else
            snprintf(title, sizeof title, "%s (thread %u)", t->name, t->tid);
        *root = named_child(s, node, SHOWN_THREAD, title);
    }
    return *root;
}

static struct stack_cost *cost_at(struct stack_costs *s, uint32_t node)
{
    uint32_t *number = &s->tree.nodes[node - 1].cost;
    if (!*number) {
        ARRAY_PUSH(s->costs, s->cost_count, NULL);
        *number = s->cost_count;
    }
    return &s->costs[*number - 1];
}

static const char *wait_title(const struct stack_costs *s, const struct stack_row *row,
                              char title[static OS_TEXT_BYTES])
{
    const struct record r = {.code = (uint16_t)row->work[1]};
    if (row->work[0] == RECORD_OS_CALL)
        return os_function_name(&s->rec->processes[row->process]->os, &r, title);
    if (row->work[0] == RECORD_GIL && row->work[1] == GIL_STOPPED)
        return "[stop of the world]";
    return row->work[0] == RECORD_SAMPLE && !row->work[1] ? "[waits]" : "[waits for the GIL]";
}

/* Adds a node for work below its call, or for the cause of a wait. */
static uint32_t split(struct stack_costs *s, const struct stack_row *row, uint32_t node)
{
    char title[GPU_TITLE_BYTES];
    struct shown_frame frame = {.kind = SHOWN_WORK};
    switch (row->work[0]) {
    case RECORD_KERNEL:
        frame.name = walk_kernel(s->walk, s->rec->processes[row->process], row->work[1]);
        if (frame.name)
            return call_tree_child(&s->tree, node, &frame);
        snprintf(title, sizeof title, "kernel %llu", (unsigned long long)row->work[1]);
        break;
    case RECORD_COPY: copy_title(row->work[1], row->work[2], row->work[3], title); break;
    case RECORD_SET: set_title(row->work[1], title); break;
    case RECORD_OS_CALL:
    case RECORD_GIL:
    case RECORD_SAMPLE: return named_child(s, node, SHOWN_CALL, wait_title(s, row, title));
    default:
        snprintf(title, sizeof title, "CUDA graph %llu", (unsigned long long)row->work[1]);
        break;
    }
    return named_child(s, node, SHOWN_WORK, title);
}

/* Adds a row to its node. */
static void stack_costs_add_row(struct stack_costs *s, struct stack_row *row)
{
    bool is_sampled = row->function == STACK_SAMPLED, is_wait = row->function == STACK_WAITED;
    const struct function_table *functions = &s->rec->reader.functions;
    const char *function =
        row->function < functions->count ? functions->functions[row->function]->name : "?";
    uint32_t root = root_of(s, s->rec->processes[row->process], row->thread);
    uint32_t node = call_tree_stack(&s->tree, root, row->process, row->stack, row->range);
    if (node && !is_sampled && !is_wait)
        node = named_child(s, node, SHOWN_CALL, function);
    if (node && row->work[0])
        node = split(s, row, node);
    if (is_sampled)
        row->cost.time_ns[host_time_of(&s->walk->survey.stacks, row->process, row->stack, false)] +=
            row->cost.cpu_ns - row->cost.time_ns[HOST_SYSTEM];
    stack_cost_add(node ? cost_at(s, node) : &s->stackless[row->process], &row->cost);
}

void stack_costs_finish(struct stack_costs *s, const char *symbol_folder)
{
    call_tree_init(&s->tree, &s->walk->survey, NULL, symbol_folder);
    s->tree.only_own = s->only_own;
    s->tree.only_named = s->only_named;
    for (uint32_t i = 0; i < s->row_count; i++)
        stack_costs_add_row(s, &s->rows[i]);
    s->tree.left_out += s->left_out;
}

struct stack_cost stack_cost_of(const struct stack_costs *s, uint32_t node)
{
    uint32_t number = call_tree_node(&s->tree, node)->cost;
    return number ? s->costs[number - 1] : (struct stack_cost){0};
}

void stack_cost_add(struct stack_cost *to, const struct stack_cost *more)
{
    enum { NUMBERS = sizeof *to / sizeof(uint64_t) }; /* the struct has only these */
    uint64_t sums[NUMBERS], numbers[NUMBERS];
    memcpy(sums, to, sizeof sums);
    memcpy(numbers, more, sizeof numbers);
    for (unsigned i = 0; i < NUMBERS; i++)
        sums[i] += numbers[i];
    memcpy(to, sums, sizeof sums);
}

bool stack_costs_has_host(const struct stack_costs *s)
{
    for (uint32_t i = 0; i < s->cost_count; i++)
        if (s->costs[i].samples || s->costs[i].waits)
            return true;
    return false;
}

struct stack_cost stack_costs_without(const struct stack_costs *s)
{
    struct stack_cost sum = {0};
    for (uint32_t i = 0; i < s->rec->count; i++)
        stack_cost_add(&sum, &s->stackless[i]);
    return sum;
}

void stack_costs_show_stackless(struct stack_costs *s)
{
    const struct shown_frame frame = {.kind = SHOWN_STACKLESS};
    for (uint32_t i = 0; i < s->rec->count; i++) {
        const struct stack_cost *cost = &s->stackless[i];
        if (!cost->calls && !cost->works && !cost->samples && !cost->waits)
            continue;
        uint32_t root = root_of(s, s->rec->processes[i], UINT32_MAX);
        uint32_t node = call_tree_child(&s->tree, root, &frame);
        if (node)
            stack_cost_add(cost_at(s, node), cost);
    }
}
