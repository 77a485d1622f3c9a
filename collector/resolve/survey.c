/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

_Static_assert(FUNCTIONS_MAX - 1 <= UINT16_MAX, "a call keeps its function's index");

/*
 * Finds the span around an ended one that ends later. Free ranges that overlap in sequence, like
 * requests, are each around the next one; without this, each GPU record would go back to the first.
 * The result was open when this span began, so this visits SPANS_DEPTH_MAX at most.
 */
static uint32_t find_outliving(struct survey *s, uint32_t parent, uint64_t end_ns)
{
    uint32_t found = parent;
    while (found) {
        const struct span_node *node = spool_at(&s->nodes, found - 1u, false);
        if (node->end_ns > end_ns)
            break;
        found = node->outlived_by;
    }
    return found;
}

void survey_take_end(struct survey *s, const struct host_span *span)
{
    if (!span->node)
        return;
    struct span_node *node = spool_at(&s->nodes, span->node - 1u, true);
    node->end_ns = span->end_ns;
    uint32_t outlived_by = find_outliving(s, node->parent, span->end_ns);
    node = spool_at(&s->nodes, span->node - 1u, true);
    node->outlived_by = outlived_by;
}

/* Whether work launched in that call belongs to the calls of its group. */
static bool is_of_group(const struct spans *spans, const struct host_span *call)
{
    return call->function->does == API_DOES_GROUP_END &&
           span_stack(spans, call->thread->index)->group.calls;
}

/* Whether this CUDA call, made in the innermost library call on its thread, launches the kernel of
 * its collective. Each collective has one kernel. */
static bool launches_collective(struct spans *spans, const struct event *e)
{
    struct library_group *group = &span_stack(spans, e->thread->index)->group;
    struct host_span *call = spans_innermost(spans, e->thread, SPAN_LIBRARY);
    if (!call || e->function->does != API_DOES_LAUNCH || e->record->flags & RECORD_CAPTURED)
        return false;
    bool is_group = is_of_group(spans, call);
    struct library_message *message = is_group ? &group->message : &call->message;
    uint64_t stream;
    if (!message->is_collective || !function_stream(e->function, e->record, &stream) ||
        stream != (is_group ? group->stream : call->stream))
        return false;
    message->is_collective = false;
    return true;
}

/* Numbers a span once a call is made in it. */
static void number_span(struct survey *s, struct spans *spans, struct host_span *span,
                        uint32_t parent)
{
    struct span_node node = {.text = span->text,
                             .begin_ns = span->begin_ns,
                             .end_ns = UINT64_MAX,
                             .parent = parent,
                             .number = span->number,
                             .row = span->row,
                             .scope = span->type == SPAN_OP ? span->scope : 0,
                             .type = span->type};
    struct nccl_call call;
    if (span->type == SPAN_RANGE) {
        s->has_ranges = true;
        node.domain_text = span->domain_text;
        node.work_begin_ns = UINT64_MAX;
        node.communicator = nccl_call_of(span, &call) ? call.communicator : 0;
    } else if (span->type == SPAN_LIBRARY) {
        const struct library_group *group = &span_stack(spans, span->thread->index)->group;
        bool is_group = is_of_group(spans, span);
        node.kind = is_group ? library_group_kind(spans->kinds, group, span->function) : span->kind;
        node.message = is_group ? group->message : span->message;
    }
    spool_append(&s->nodes, &node);
    span->node = (uint32_t)s->nodes.count;
}

uint32_t survey_number(struct survey *s, struct spans *spans, const struct thread *thread)
{
    struct span_stack *stack = span_stack(spans, thread->index);
    uint32_t at = stack->count;
    while (at > 0 && !stack->open[at - 1].node)
        at--;
    uint32_t innermost = at ? stack->open[at - 1].node : 0;
    for (; at < stack->count; at++) {
        struct host_span *span = &stack->open[at];
        if (span->type == SPAN_OP ? span->is_traced
                                  : span->type == SPAN_RANGE && span->is_duplicate)
            continue;
        number_span(s, spans, span, innermost);
        innermost = span->node;
    }
    return innermost;
}

static inline void survey_add_call(struct survey *s, const struct event *e, unsigned flags,
                                   uint32_t span, uint32_t stack)
{
    const uint32_t process = e->process->index, id = e->record->correlation;
    struct correlated_call *call = correlation_add(&s->calls, process, id);
    if (call)
        *call = (struct correlated_call){.process = process,
                                         .id = id,
                                         .begin_ns = e->begin_ns,
                                         .end_ns = e->end_ns,
                                         .thread = e->thread->index,
                                         .function = (uint16_t)e->function->index,
                                         .flags = (uint16_t)flags,
                                         .span = span,
                                         .stack = stack};
}

static __attribute__((noinline)) void survey_look_around(struct survey *s, struct spans *spans,
                                                         const struct event *e, unsigned flags)
{
    const struct host_span *op = spans_with_stack(spans, e->thread);
    uint32_t own = e->record->stack_id, span = survey_number(s, spans, e->thread);
    flags |= launches_collective(spans, e) ? CORRELATION_COLLECTIVE : 0;
    survey_add_call(s, e, flags, span, own ? own : op ? op->stack : 0);
}

static inline bool may_work(const struct event *e)
{
    const unsigned class = e->function->class;
    return (class == API_LAUNCH || class == API_COPY || class == API_GRAPH_LAUNCH) &&
           !(e->record->flags & RECORD_CAPTURED);
}

/* Whether it is a copy or fill on the device. */
static bool moves(const struct event *e)
{
    enum { HOST_TO_HOST = 0, NOT_SAID = 4 };
    unsigned does = e->function->does;
    return (api_is_copy(does) || does == API_DOES_SET) &&
           function_arg_of(e->function, e->record, ARG_BYTES, 1) &&
           function_arg_of(e->function, e->record, ARG_KIND, NOT_SAID) != HOST_TO_HOST;
}

/* Which flag says that the call should have work; 0: none is expected. */
static inline unsigned expected_work(const struct event *e)
{
    const struct record *r = e->record;
    unsigned does = e->function->does;
    if (r->result || r->flags & (RECORD_NESTED | RECORD_CAPTURED | RECORD_OPEN | RECORD_STALE))
        return 0;
    if (does == API_DOES_LAUNCH)
        return CORRELATION_LAUNCH;
    if (does == API_DOES_GRAPH_LAUNCH)
        return CORRELATION_GRAPH;
    return moves(e) ? CORRELATION_MOVES : 0;
}

void survey_take_call(struct survey *s, struct spans *spans, const struct event *e)
{
    const struct record *r = e->record;
    if (r->flags & RECORD_OPEN && e->end_ns - e->begin_ns >= SURVEY_HANG_NS &&
        (e->function->class == API_SYNC || e->function->class == API_COPY))
        s->threads[e->thread->index].is_hung = true;
    unsigned expected = expected_work(e);
    if (!r->correlation) {
        s->processes[e->process->index].untied += expected == CORRELATION_LAUNCH;
        return;
    }
    if (expected == CORRELATION_LAUNCH)
        s->threads[e->thread->index].last_launch_ns = e->begin_ns;
    unsigned flags = expected | (may_work(e) ? (unsigned)CORRELATION_WORKS : 0) |
                     (r->flags & RECORD_NESTED ? (unsigned)CORRELATION_NESTED : 0);
    if (!s->is_bare && span_stack(spans, e->thread->index)->count)
        survey_look_around(s, spans, e, flags);
    else
        survey_add_call(s, e, flags, 0, r->stack_id);
}

void survey_add_device(struct survey *s, const struct surveyed_device *device)
{
    struct key key = {device->process, device->limits.device, 0};
    KEY_MAP_ITEM(&s->indexes, key, s->devices, s->device_count, SURVEY_DEVICES_MAX, device);
}

static void survey_take_device(struct survey *s, const struct event *e)
{
    const struct record *r = e->record;
    struct surveyed_device d = {
        .process = e->process->index,
        .limits = {.device = record_arg(r, DEVICE_DEVICE),
                   .major = record_arg(r, DEVICE_MAJOR),
                   .minor = record_arg(r, DEVICE_MINOR),
                   .multiprocessors = record_arg(r, DEVICE_MULTIPROCESSORS),
                   .threads_max = record_arg(r, DEVICE_THREADS_MAX),
                   .blocks_max = record_arg(r, DEVICE_BLOCKS_MAX),
                   .registers_max = record_arg(r, DEVICE_REGISTERS_MAX),
                   .shared_max = record_arg(r, DEVICE_SHARED_MAX),
                   .shared_block_max = record_arg(r, DEVICE_SHARED_BLOCK_MAX),
                   .memory = record_arg(r, DEVICE_MEMORY),
                   .warp = record_arg(r, DEVICE_WARP)},
        .uuid_high = record_arg(r, DEVICE_UUID_HIGH),
        .uuid_low = record_arg(r, DEVICE_UUID_LOW),
    };
    snprintf(d.name, sizeof d.name, "%.*s", (int)r->byte_count,
             r->bytes ? (const char *)r->bytes : "");
    survey_add_device(s, &d);
}

static void take_context(struct survey *s, uint32_t process, uint64_t context, uint64_t number)
{
    const struct key first = {process, 0, 1};
    uint64_t before = key_map_get(&s->contexts, first);
    s->has_devices |= before && before != number;
    (void)key_map_set(&s->contexts, first, number);
    (void)key_map_set(&s->contexts, (struct key){process, context, 0}, number);
}

/* Beyond the maximum, launches during a pause count as missing. */
void survey_take_pause(struct survey *s, const struct event *e, bool begins)
{
    if (s->pause_count == SURVEY_PAUSES_MAX)
        return;
    struct surveyed_pause pause = {.process = e->process->index,
                                   .order = s->pause_count,
                                   .begins = begins,
                                   .at_ns = e->begin_ns};
    ARRAY_PUSH(s->pauses, s->pause_count, &pause);
}

void survey_take(struct survey *s, const struct event *e)
{
    const struct record *r = e->record;
    switch (r->type) {
    case RECORD_DEVICE: survey_take_device(s, e); break;
    case RECORD_CONTEXT:
        take_context(s, e->process->index, record_arg(r, CONTEXT_CONTEXT),
                     (uint32_t)record_arg(r, CONTEXT_DEVICE) + 1ull);
        break;
    case RECORD_LINK:
        correlation_link(&s->calls, e->process->index, r->correlation,
                         (uint32_t)record_arg(r, LINK_FURTHER), e->begin_ns);
        break;
    case RECORD_CONTENT:
        if (r->correlation && record_arg(r, CONTENT_HASH))
            key_map_set_anew(&s->contents, (struct key){e->process->index, r->correlation, 0},
                             record_arg(r, CONTENT_HASH), SURVEY_CONTENTS_MAX);
        break;
    case RECORD_TENSOR: s->has_tensors[e->process->index] = true; break;
    default: break;
    }
}

static int compare_pauses(const void *left, const void *right)
{
    const struct surveyed_pause *a = left, *b = right;
    return ORDER(a->process, b->process) ?: ORDER(a->order, b->order);
}

void survey_finish_pauses(struct survey *s)
{
    ARRAY_SORT(s->pauses, s->pause_count, compare_pauses);
}

void survey_begin(struct survey *s, const struct process *only)
{
    uint32_t first = only ? only->index : 0, count = only ? 1 : s->rec->count;
    uint32_t first_thread = only ? only->first_thread : 0;
    uint32_t threads = only ? only->thread_count : s->rec->thread_count;
    correlation_forget(&s->calls);
    spool_release(&s->nodes);
    spool_init(&s->nodes, sizeof(struct span_node));
    memset(&s->processes[first], 0, count * sizeof *s->processes);
    memset(&s->threads[first_thread], 0, threads * sizeof *s->threads);
}

void survey_init(struct survey *s, struct recording *rec)
{
    *s = (struct survey){.rec = rec};
    correlation_init(&s->calls, rec->count);
    spool_init(&s->nodes, sizeof(struct span_node));
    stack_table_init(&s->stacks, recording_bytes(rec));
    s->processes = memory_new(rec->count + 1u, sizeof *s->processes);
    s->threads = memory_new(rec->thread_count + 1u, sizeof *s->threads);
    s->has_tensors = memory_new(rec->count + 1u, sizeof *s->has_tensors);
}

void survey_release(struct survey *s)
{
    correlation_release(&s->calls);
    spool_release(&s->nodes);
    key_map_release(&s->contexts);
    key_map_release(&s->indexes);
    key_map_release(&s->contents);
    stack_table_release(&s->stacks);
    free(s->devices);
    free(s->pauses);
    free(s->processes);
    free(s->threads);
    free(s->has_tensors);
}

const struct surveyed_device *survey_device(const struct survey *s, const struct process *p,
                                            uint64_t device)
{
    uint64_t place = key_map_get(&s->indexes, (struct key){p->index, device, 0});
    return place ? &s->devices[place - 1] : NULL;
}

struct key surveyed_device_key(const struct surveyed_device *s, const struct process *p,
                               uint64_t device)
{
    return s && (s->uuid_high || s->uuid_low) ? (struct key){s->uuid_high, s->uuid_low, 0}
                                              : (struct key){p->index, device, 1};
}

uint64_t survey_context_device(const struct survey *s, const struct process *p, uint64_t context)
{
    uint64_t value = key_map_get(&s->contexts, (struct key){p->index, context, 0});
    return value ? value - 1 : 0;
}

struct span_node *survey_span(struct survey *s, const struct correlated_call *call, unsigned types,
                              uint32_t *number, bool change)
{
    while (*number) {
        struct span_node *node = spool_at(&s->nodes, *number - 1u, change);
        bool is_over =
            node->end_ns <= call->begin_ns; /* if spans cross, the outer one ends first */
        *number = is_over ? node->outlived_by : node->parent;
        if (!is_over && types >> node->type & 1)
            return node;
    }
    return NULL;
}

__attribute__((noinline)) void survey_project(struct survey *s, const struct correlated_call *call,
                                              uint64_t begin_ns, uint64_t end_ns)
{
    uint32_t number = s->has_ranges ? call->span : 0;
    struct span_node *node;
    while ((node = survey_span(s, call, SPANS_OF(SPAN_RANGE), &number, true))) {
        if (node->work_begin_ns > begin_ns)
            node->work_begin_ns = begin_ns;
        if (node->work_end_ns < end_ns)
            node->work_end_ns = end_ns;
    }
}

uint32_t survey_gaps(const struct survey *s, uint32_t process, struct correlation_gap **gaps)
{
    uint32_t count = 0;
    uint32_t first = process ? ARRAY_UP_TO(s->pauses, s->pause_count, process, process - 1) : 0;
    uint32_t end = ARRAY_UP_TO(s->pauses, s->pause_count, process, process);
    *gaps = memory_new(end - first + 1u, sizeof **gaps);
    for (uint32_t i = first; i < end; i++) {
        const struct surveyed_pause *p = &s->pauses[i];
        bool is_open = count && (*gaps)[count - 1].end_ns == UINT64_MAX;
        if (p->begins == is_open)
            continue;
        if (is_open)
            (*gaps)[count - 1].end_ns = p->at_ns;
        else
            (*gaps)[count++] = (struct correlation_gap){p->at_ns, UINT64_MAX};
    }
    return count;
}

/* Whether records that CUPTI had not delivered may be missing. */
static bool may_lack(const struct process *p)
{
    return !p->end_reason || p->end_reason == END_KILLED ||
           p->losses.counters[COUNTER_GPU_UNFLUSHED];
}

/* Says which calls of the process should have work. */
static void expect_work(const struct survey *s, const struct process *p,
                        struct correlation_losses *l)
{
    uint64_t worked_ns = s->processes[p->index].worked_ns;
    l->kinds = CORRELATION_LAUNCH;
    l->late_ns = worked_ns - min_of(worked_ns, SURVEY_LATE_NS);
    if (may_lack(p))
        l->kinds |= CORRELATION_GRAPH | (process_wants_moves(p) ? (unsigned)CORRELATION_MOVES : 0);
    l->gap_count = survey_gaps(s, p->index, &l->gaps);
}

void survey_report(struct survey *s, uint32_t first, uint32_t end, struct losses *losses)
{
    struct correlation_losses *all = memory_new(s->rec->count + 1u, sizeof *all);
    for (uint32_t i = first; i < end; i++) {
        const struct process *p = s->rec->processes[i];
        if (process_expects_gpu(p) && process_wants_kernels(p))
            expect_work(s, p, &all[i]);
    }
    correlation_missing(&s->calls, all, s->threads);
    for (uint32_t i = first; i < end; i++) {
        struct losses *l = &losses[i];
        /* Work in flight when gpuprof gave up CUPTI looks the same as other missing work. */
        uint64_t given_up_ns = cost_table_step_ns(&s->rec->processes[i]->costs, LADDER_CUPTI);
        free(all[i].gaps);
        if (!all[i].kinds)
            continue;
        if (given_up_ns != UINT64_MAX)
            l->gpu_given_up += all[i].count;
        else if (!process_runs(s->rec->processes[i])) /* else CUPTI may still deliver it */
            l->gpu_missing = all[i].count;
        l->gpu_pending = all[i].pending;
        l->gpu_untied = s->processes[i].untied;
    }
    free(all);
}
