/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/survey.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"
#include "resolve/nccl_call.h"

_Static_assert(FUNCTIONS_MAX - 1 <= UINT16_MAX, "a call keeps its function's index");

/*
 * Finds the range around an ended one that ends later. Free ranges that overlap in sequence, like
 * requests, are each around the next one; without this, each GPU record would go back to the first.
 * The result was open when this range began, so this visits RANGES_DEPTH_MAX at most.
 */
static int find_outliving(struct survey *s, uint32_t parent, uint64_t end_ns, uint32_t *found)
{
    int error = 0;
    for (*found = parent; *found;) {
        const struct range_node *node = spool_at(&s->nodes, *found - 1u, false, &error);
        if (!node || node->end_ns > end_ns)
            break;
        *found = node->outlived_by;
    }
    return error;
}

static int close_range(struct survey *s, const struct range *range)
{
    int error = 0;
    uint32_t outlived_by;
    struct range_node *node = spool_at(&s->nodes, range->node - 1u, true, &error);
    if (!node)
        return error;
    node->end_ns = range->end_ns;
    error = find_outliving(s, node->parent, range->end_ns, &outlived_by);
    node = error < 0 ? NULL : spool_at(&s->nodes, range->node - 1u, true, &error);
    if (node)
        node->outlived_by = outlived_by;
    return error;
}

/* Gives a number to a range that opens, and stores the end of one that closes. */
int survey_take_range(struct survey *s, enum range_change change, struct range *range,
                      uint32_t parent)
{
    int error = 0;
    if (change == RANGE_OPENED) {
        struct range_node node = {.text = range->text,
                                  .domain_text = range->domain_text,
                                  .begin_ns = range->begin_ns,
                                  .end_ns = UINT64_MAX,
                                  .work_begin_ns = UINT64_MAX,
                                  .parent = parent,
                                  .sequence = range->sequence};
        struct nccl_call call;
        node.communicator = nccl_call_of(range, &call) ? call.communicator : 0;
        error = spool_append(&s->nodes, &node);
        range->node = (uint32_t)s->nodes.count;
    } else if (change == RANGE_CLOSED && range->node) {
        error = close_range(s, range);
    }
    return error;
}

/* Numbers an operator once a call is made in it. */
static int survey_take_op(struct survey *s, struct op *op, uint32_t parent)
{
    struct op_node node = {.end_ns = UINT64_MAX,
                           .text = op->text,
                           .name = op->name,
                           .scope = op->scope,
                           .parent = parent,
                           .number = op->number,
                           .row = op->row,
                           .is_label = op_is_label(op)};
    int error = spool_append(&s->ops, &node);
    op->node = (uint32_t)s->ops.count;
    return error;
}

/* Numbers the operators around a call, except traced ones; *innermost is the last number, or 0. */
static int take_ops(struct survey *s, struct op_stack *stack, uint32_t *innermost)
{
    int error = 0;
    uint32_t at = stack->count;
    while (at > 0 && !stack->open[at - 1].node)
        at--;
    *innermost = at ? stack->open[at - 1].node : 0;
    for (; error == 0 && at < stack->count; at++) {
        if (stack->open[at].is_traced)
            continue;
        error = survey_take_op(s, &stack->open[at], *innermost);
        *innermost = stack->open[at].node;
    }
    return error;
}

int survey_take_op_end(struct survey *s, const struct op *op)
{
    int error = 0;
    struct op_node *node = op->node ? spool_at(&s->ops, op->node - 1u, true, &error) : NULL;
    if (node)
        node->end_ns = op->end_ns;
    return error;
}

/* Numbers the library calls around a call, as take_ops does for operators. */
static int take_libraries(struct survey *s, struct library_calls *libraries,
                          const struct thread *thread, uint32_t *innermost)
{
    struct library_stack *stack = library_stack(libraries, thread->index);
    int error = 0;
    *innermost = 0;
    for (uint32_t i = 0; error == 0 && i < stack->count; i++) {
        struct library_call *call = &stack->open[i];
        if (!call->node) {
            struct library_node node = {.parent = *innermost};
            int64_t kind = library_call_kind(libraries, call, &node.message);
            node.kind = (uint32_t)kind & UINT32_MAX >> 2;
            error = kind < 0 ? (int)kind : spool_append(&s->libraries, &node);
            call->node = (uint32_t)s->libraries.count;
        }
        *innermost = call->node;
    }
    return error;
}

/* The context and stack of a call, for struct correlated_call. */
struct around {
    uint32_t range, library, op, stack;
};

static inline int survey_add_call(struct survey *s, const struct event *e, unsigned flags,
                                  struct around around)
{
    const uint32_t process = e->process->index, id = e->record->correlation;
    struct correlated_call *call;
    int error = correlation_add(&s->calls, process, id, &call);
    if (call)
        *call = (struct correlated_call){.process = process,
                                         .id = id,
                                         .begin_ns = e->begin_ns,
                                         .end_ns = e->end_ns,
                                         .thread = e->thread->index,
                                         .range = around.range,
                                         .library = around.library,
                                         .function = (uint16_t)e->function->index,
                                         .flags = (uint16_t)flags,
                                         .op = around.op,
                                         .stack = around.stack};
    return error;
}

static __attribute__((noinline)) int survey_look_around(struct survey *s, struct ranges *ranges,
                                                        struct ops *ops,
                                                        struct library_calls *libraries,
                                                        const struct event *e, unsigned flags)
{
    const struct range *range = ranges_innermost(ranges, e->thread, false);
    uint32_t own = e->record->stack_id;
    struct around around = {.range = range ? range->node : 0,
                            .stack = own ? own : ops_stack_around(ops, e->thread)};
    int error = take_ops(s, ops_stack(ops, e->thread->index), &around.op);
    if (error == 0)
        error = take_libraries(s, libraries, e->thread, &around.library);
    flags |= library_calls_launch(libraries, e) ? CORRELATION_COLLECTIVE : 0;
    return error < 0 ? error : survey_add_call(s, e, flags, around);
}

/* Whether a range, an operator or a library call is open on the thread. */
static inline bool is_in_any(const struct ranges *ranges, const struct ops *ops,
                             const struct library_calls *libraries, uint32_t thread)
{
    return ranges_stack(ranges, thread)->count | ops_stack(ops, thread)->count |
           library_stack(libraries, thread)->count;
}

static inline bool may_work(const struct event *e)
{
    const unsigned classes = 1u << API_LAUNCH | 1u << API_COPY | 1u << API_GRAPH_LAUNCH;
    return classes >> e->function->class & 1 && !(e->record->flags & RECORD_CAPTURED);
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

int survey_take_call(struct survey *s, struct ranges *ranges, struct ops *ops,
                     struct library_calls *libraries, const struct event *e)
{
    const struct record *r = e->record;
    if (r->flags & RECORD_OPEN && e->end_ns - e->begin_ns >= SURVEY_HANG_NS &&
        (e->function->class == API_SYNC || e->function->class == API_COPY))
        s->threads[e->thread->index].is_hung = true;
    unsigned expected = expected_work(e);
    if (!r->correlation) {
        s->processes[e->process->index].untied += expected == CORRELATION_LAUNCH;
        return 0;
    }
    if (expected == CORRELATION_LAUNCH)
        s->threads[e->thread->index].last_launch_ns = e->begin_ns;
    unsigned flags = expected | (may_work(e) ? (unsigned)CORRELATION_WORKS : 0) |
                     (r->flags & RECORD_NESTED ? (unsigned)CORRELATION_NESTED : 0);
    if (!s->is_bare && is_in_any(ranges, ops, libraries, e->thread->index))
        return survey_look_around(s, ranges, ops, libraries, e, flags);
    return survey_add_call(s, e, flags, (struct around){.stack = r->stack_id});
}

int survey_add_device(struct survey *s, const struct surveyed_device *device)
{
    struct key key = {device->process, device->limits.device, 0};
    uint32_t number;
    return KEY_MAP_ITEM(&s->indexes, key, s->devices, s->device_count, SURVEY_DEVICES_MAX, device,
                        &number);
}

static int survey_take_device(struct survey *s, const struct event *e)
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
    return survey_add_device(s, &d);
}

/* Beyond the maximum, launches during a pause count as missing. */
int survey_take_pause(struct survey *s, const struct event *e, bool begins)
{
    if (s->pause_count == SURVEY_PAUSES_MAX)
        return 0;
    struct surveyed_pause pause = {.process = e->process->index,
                                   .order = s->pause_count,
                                   .begins = begins,
                                   .at_ns = e->begin_ns};
    return ARRAY_PUSH(s->pauses, s->pause_count, &pause);
}

int survey_take(struct survey *s, const struct event *e)
{
    const struct record *r = e->record;
    int error = 0;
    switch (r->type) {
    case RECORD_DEVICE: return survey_take_device(s, e);
    case RECORD_CONTEXT: {
        struct key key = {e->process->index, record_arg(r, CONTEXT_CONTEXT), 0};
        error = key_map_set(&s->contexts, key, (uint32_t)record_arg(r, CONTEXT_DEVICE) + 1ull);
        return error == GPUPROF_NO_MEMORY ? error : 0;
    }
    case RECORD_LINK:
        return correlation_link(&s->calls, e->process->index, r->correlation,
                                (uint32_t)record_arg(r, LINK_FURTHER), e->begin_ns);
    case RECORD_CONTENT:
        if (!r->correlation || !record_arg(r, CONTENT_HASH))
            return 0;
        return key_map_set_anew(&s->contents, (struct key){e->process->index, r->correlation, 0},
                                record_arg(r, CONTENT_HASH), SURVEY_CONTENTS_MAX);
    case RECORD_TENSOR: s->has_tensors[e->process->index] = true; return 0;
    default: return 0;
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

static void init_nodes(struct survey *s)
{
    spool_init(&s->nodes, sizeof(struct range_node));
    spool_init(&s->ops, sizeof(struct op_node));
    spool_init(&s->libraries, sizeof(struct library_node));
}

static void release_nodes(struct survey *s)
{
    spool_release(&s->nodes);
    spool_release(&s->ops);
    spool_release(&s->libraries);
}

void survey_begin(struct survey *s, const struct process *only)
{
    uint32_t first = only ? only->index : 0, count = only ? 1 : s->rec->count;
    uint32_t first_thread = only ? only->first_thread : 0;
    uint32_t threads = only ? only->thread_count : s->rec->thread_count;
    correlation_forget(&s->calls);
    release_nodes(s);
    init_nodes(s);
    memset(&s->processes[first], 0, count * sizeof *s->processes);
    memset(&s->threads[first_thread], 0, threads * sizeof *s->threads);
}

int survey_init(struct survey *s, struct recording *rec)
{
    *s = (struct survey){.rec = rec};
    correlation_init(&s->calls, rec->count);
    init_nodes(s);
    stack_table_init(&s->stacks, recording_bytes(rec));
    s->processes = calloc(rec->count + 1u, sizeof *s->processes);
    s->threads = calloc(rec->thread_count + 1u, sizeof *s->threads);
    s->has_tensors = calloc(rec->count + 1u, sizeof *s->has_tensors);
    return s->processes && s->threads && s->has_tensors ? 0 : GPUPROF_NO_MEMORY;
}

void survey_release(struct survey *s)
{
    correlation_release(&s->calls);
    release_nodes(s);
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

const struct range_node *survey_range(struct survey *s, uint32_t number, int *error)
{
    return spool_at(&s->nodes, number - 1u, false, error);
}

struct library_node *survey_library(struct survey *s, uint32_t number, int *error)
{
    return spool_at(&s->libraries, number - 1u, true, error);
}

const struct op_node *survey_op(struct survey *s, const struct correlated_call *call,
                                struct op_place *place, int *error)
{
    while (place->number && place->passed++ < OPS_CHAIN_MAX) {
        const struct op_node *node = spool_at(&s->ops, place->number - 1u, false, error);
        if (!node)
            return NULL;
        place->number = node->parent;
        if (node->end_ns > call->begin_ns) /* if operators cross, the outer one may have ended */
            return node;
    }
    return NULL;
}

struct range_node *survey_range_around(struct survey *s, const struct correlated_call *call,
                                       uint32_t *number, bool change, int *error)
{
    while (*number) {
        struct range_node *node = spool_at(&s->nodes, *number - 1u, change, error);
        if (!node)
            return NULL;
        bool is_over = node->end_ns <=
                       call->begin_ns; /* a free range may end before one that began inside it */
        *number = is_over ? node->outlived_by : node->parent;
        if (!is_over)
            return node;
    }
    return NULL;
}

__attribute__((noinline)) int survey_project(struct survey *s, const struct correlated_call *call,
                                             uint64_t begin_ns, uint64_t end_ns)
{
    int error = 0;
    uint32_t number = call->range;
    struct range_node *node;
    while ((node = survey_range_around(s, call, &number, true, &error))) {
        if (node->work_begin_ns > begin_ns)
            node->work_begin_ns = begin_ns;
        if (node->work_end_ns < end_ns)
            node->work_end_ns = end_ns;
    }
    return error;
}

int64_t survey_gaps(const struct survey *s, uint32_t process, struct correlation_gap **gaps)
{
    uint32_t count = 0;
    uint32_t first = process ? ARRAY_UP_TO(s->pauses, s->pause_count, process, process - 1) : 0;
    uint32_t end = ARRAY_UP_TO(s->pauses, s->pause_count, process, process);
    *gaps = calloc(end - first + 1u, sizeof **gaps);
    if (!*gaps)
        return GPUPROF_NO_MEMORY;
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

int survey_report(struct survey *s, const struct process *p, struct losses *losses)
{
    const struct surveyed_process *its = &s->processes[p->index];
    uint64_t missing = 0, worked_ns = its->worked_ns;
    struct correlation_gap *gaps;
    if (!process_wants_kernels(p))
        return 0;
    int64_t gap_count = survey_gaps(s, p->index, &gaps);
    if (gap_count < 0)
        return (int)gap_count;
    struct correlation_losses l = {
        .process = p->index,
        .kinds = CORRELATION_LAUNCH,
        .late_ns = worked_ns - (worked_ns < SURVEY_LATE_NS ? worked_ns : SURVEY_LATE_NS),
        .gaps = gaps,
        .gap_count = (uint32_t)gap_count,
        .threads = s->threads};
    if (may_lack(p))
        l.kinds |= CORRELATION_GRAPH | (process_wants_moves(p) ? (unsigned)CORRELATION_MOVES : 0);
    int error = correlation_missing(&s->calls, &l, &missing, &losses->gpu_pending);
    free(gaps);
    losses->gpu_untied = its->untied;
    /* Work in flight when gpuprof gave up CUPTI looks the same as other missing work. */
    if (cost_table_step_ns(&p->costs, LADDER_CUPTI) != UINT64_MAX)
        losses->gpu_given_up += missing;
    else
        losses->gpu_missing = missing;
    return error;
}
