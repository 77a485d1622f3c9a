/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/library_calls.h"

#include <assert.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "error.h"
#include "record/gpu_record.h"

#define TEXT_BYTES      1024 /* bytes of the text of a kind */
#define PLAN_TEXT_BYTES 300  /* bytes of a plan in that text */

/* Arguments of a call, by meaning. */
struct arguments {
    struct library_shape shape;
    uint64_t count, type; /* of a message; `type` is an ncclDataType_t */
    uint64_t communicator, sequence, stream, root;
    bool has_batch, has_count, has_type, has_root;
};

#define IN(member)                                                                                 \
    .at = offsetof(struct arguments, member), .bytes = sizeof((struct arguments *)NULL)->member
#define HAS(member) .has = offsetof(struct arguments, member)

/* The member that an argument with that label sets. */
static const struct {
    const char *label;
    size_t at, bytes;
    size_t has; /* flag that it is present; 0: none */
} members[] = {
    {"m", IN(shape.m), HAS(shape.has_m)},
    {"n", IN(shape.n), HAS(shape.has_n)},
    {"k", IN(shape.k), HAS(shape.has_k)},
    {"batch", IN(shape.batch), HAS(has_batch)},
    {"mnk", IN(shape.mnk)},
    {"a_type", IN(shape.a_type)},
    {"b_type", IN(shape.b_type)},
    {"c_type", IN(shape.c_type)},
    {"d_type", IN(shape.d_type)},
    {"compute", IN(shape.compute)},
    {"trans_a", IN(shape.trans_a)},
    {"trans_b", IN(shape.trans_b)},
    {"side", IN(shape.side)},
    {"count", IN(count), HAS(has_count)},
    {"type", IN(type), HAS(has_type)},
    {"bytes", IN(shape.bytes)},
    {"plan", IN(shape.plan)},
    {"comm", IN(communicator)},
    {"sequence", IN(sequence)},
    {"stream", IN(stream)},
    {"root", IN(root), HAS(has_root)},
};

#define MEMBERS (sizeof members / sizeof members[0])

/* By member: index of the argument of a function + 1; 0: none. */
struct library_form {
    uint8_t places[MEMBERS];
};

static const struct number_kind kind_kind = NUMBER_KEY(struct library_kind, is_group);

int library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                       uint32_t process_count)
{
    uint64_t more = bytes / KIND_BYTES;
    *k = (struct library_kinds){.texts = texts, .process_count = process_count};
    k->count_max = more < KINDS_MAX - KINDS_FREE ? KINDS_FREE + (uint32_t)more : KINDS_MAX;
    k->plans = calloc(process_count + 1u, sizeof *k->plans);
    return k->plans ? 0 : GPUPROF_NO_MEMORY;
}

void library_kinds_release(struct library_kinds *k)
{
    for (uint32_t i = 0; k->plans && i < k->process_count; i++)
        kernel_handles_release(k->texts, &k->plans[i]);
    for (uint32_t i = 0; i < k->form_count; i++)
        free(k->forms[i]);
    free(k->forms);
    free(k->plans);
    free(k->list);
    free(k->communicators);
    number_set_release(&k->numbers);
    key_map_release(&k->communicator_ids);
    key_map_release(&k->handles);
    *k = (struct library_kinds){0};
}

/* ---- records --------------------------------------------------------------------------------- */

/* Stores a communicator; beyond the maximum it stays unknown. */
static int learn_communicator(struct library_kinds *k, const struct event *e)
{
    const struct record *r = e->record;
    uint32_t ranks = (uint32_t)record_arg(r, COMMUNICATOR_RANKS);
    struct key id = {record_arg(r, COMMUNICATOR_ID), ranks, 0};
    struct communicator made = {id.a, ranks};
    uint32_t number;
    int error = KEY_MAP_ITEM(&k->communicator_ids, id, k->communicators, k->communicator_count,
                             COMMUNICATORS_MAX, &made, &number);
    if (error < 0 || !number)
        return error;
    struct key handle = {e->process->index, record_arg(r, COMMUNICATOR_HANDLE), 0};
    return key_map_set(&k->handles, handle, number) == GPUPROF_NO_MEMORY ? GPUPROF_NO_MEMORY : 0;
}

int library_kinds_learn(struct library_kinds *k, const struct event *e)
{
    const struct record *r = e->record;
    if (r->type == RECORD_COMMUNICATOR)
        return learn_communicator(k, e);
    if (!r->bytes)
        return 0;
    return kernel_name_set(k->texts, &k->plans[e->process->index], record_arg(r, LIBRARY_PLAN_PLAN),
                           r->bytes, r->byte_count);
}

static const struct library_form *form_of(struct library_kinds *k, const struct function *f)
{
    struct library_form **forms =
        array_reach(k->forms, &k->form_count, f->index, sizeof(struct library_form *));
    if (!forms)
        return NULL;
    k->forms = forms;
    struct library_form **form = &k->forms[f->index];
    if (*form || !(*form = calloc(1, sizeof **form)))
        return *form;
    for (unsigned i = 0; i < f->arg_count; i++)
        for (unsigned m = 0; m < MEMBERS; m++)
            if (strcmp(f->args[i].label, members[m].label) == 0)
                (*form)->places[m] = (uint8_t)(i + 1);
    return *form;
}

/* Reads the arguments. A type that does not fit in its member becomes LIBRARY_TYPE_NONE. */
static void read_arguments(const struct library_form *form, const struct record *r,
                           struct arguments *a)
{
    const uint8_t none = LIBRARY_TYPE_NONE;
    *a = (struct arguments){.type = UINT64_MAX,
                            .shape = {.compute = UINT16_MAX,
                                      .a_type = none,
                                      .b_type = none,
                                      .c_type = none,
                                      .d_type = none,
                                      .trans_a = none,
                                      .trans_b = none}};
    for (unsigned m = 0; m < MEMBERS; m++) {
        if (!form->places[m] || form->places[m] > r->arg_count)
            continue;
        uint64_t value = r->args[form->places[m] - 1];
        uint8_t byte = value < none ? (uint8_t)value : none;
        uint16_t word = (uint16_t)value;
        size_t bytes = members[m].bytes;
        memcpy((char *)a + members[m].at,
               bytes == sizeof byte   ? (void *)&byte
               : bytes == sizeof word ? (void *)&word
                                      : (void *)&value,
               bytes);
        if (members[m].has)
            *((bool *)a + members[m].has) = true;
    }
}

/* Converts an ncclDataType_t to a cudaDataType. */
static uint8_t message_type(uint64_t type)
{
    static const uint8_t types[] = {3, 8, 10, 12, 24, 26, 2, 0, 1, 14, 28, 29};
    return type < sizeof types ? types[type] : LIBRARY_TYPE_NONE;
}

static void find_message(const struct library_kinds *k, const struct event *e, struct arguments *a,
                         struct library_message *message)
{
    struct key handle = {e->process->index, a->communicator, 0};
    message->communicator = a->communicator ? (uint32_t)key_map_get(&k->handles, handle) : 0;
    message->sequence = a->sequence;
    message->is_collective =
        e->function->does == API_DOES_COLLECTIVE && message->communicator && a->sequence;
    message->is_rooted = a->has_root;
    if (message->communicator)
        a->shape.ranks = k->communicators[message->communicator - 1].ranks;
    if (a->has_count && a->has_type)
        library_shape_count(&a->shape, a->count, message_type(a->type));
}

static int64_t library_calls_number_of(struct library_kinds *k, const struct library_kind *wanted)
{
    struct library_kind others = {.function = wanted->function, .is_others = true};
    int64_t number = NUMBER_ADD(&k->numbers, &kind_kind, k->list, k->count,
                                wanted->is_others ? UINT32_MAX : k->count_max, wanted);
    return number ? number : library_calls_number_of(k, &others);
}

/* The kind and message of the call that a LIBRARY_BEGIN record begins. Returns a number, or
 * GPUPROF_NO_MEMORY. */
static int64_t library_kind_of(struct library_kinds *k, const struct event *e,
                               struct library_message *message, uint64_t *stream)
{
    const struct library_form *form = form_of(k, e->function);
    if (!form)
        return GPUPROF_NO_MEMORY;
    struct arguments a;
    read_arguments(form, e->record, &a);
    if (a.has_batch && !a.shape.batch) /* an empty batch */
        a.shape.has_m = a.shape.has_n = a.shape.has_k = false;
    if (a.shape.d_type == LIBRARY_TYPE_NONE)
        a.shape.d_type = a.shape.c_type;
    if (a.shape.plan)
        a.shape.process = e->process->index + 1;
    find_message(k, e, &a, message);
    *stream = a.stream;
    return library_calls_number_of(
        k, &(struct library_kind){.function = e->function, .shape = a.shape});
}

/* ---- work and texts of kinds ----------------------------------------------------------------- */

static const struct kernel_name *plan_of(const struct library_kinds *k,
                                         const struct library_shape *shape)
{
    return shape->plan ? kernel_name_of(&k->plans[shape->process - 1], shape->plan) : NULL;
}

struct library_work library_kind_work(const struct library_kinds *k, uint32_t number)
{
    const struct library_kind *kind = library_kind(k, number);
    const struct kernel_name *plan = plan_of(k, &kind->shape);
    if (kind->is_others)
        return (struct library_work){.type = LIBRARY_TYPE_NONE};
    if (kind->shape.plan)
        return plan ? library_plan_work(plan->raw)
                    : (struct library_work){.type = LIBRARY_TYPE_NONE};
    return library_work_of(kind->function->does, &kind->shape);
}

static void put_kind(const struct library_kinds *k, const struct library_kind *kind, FILE *out)
{
    const struct kernel_name *plan = plan_of(k, &kind->shape);
    fputs(kind->function->name, out);
    if (kind->is_others)
        fputs(" (others)", out);
    else if (kind->is_group)
        fprintf(out, " of %" PRIu64 " calls, %" PRIu64 " bytes", kind->shape.batch,
                kind->shape.bytes);
    else if (plan)
        fprintf(out, " %.*s", PLAN_TEXT_BYTES, plan->raw);
    else
        library_shape_put(&kind->shape, out);
}

const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number, int *error)
{
    struct library_kind *kind = &k->list[number - 1];
    char text[TEXT_BYTES];
    FILE *out = kind->text ? NULL : fmemopen(text, sizeof text, "w");
    if (kind->text)
        return kind->text;
    if (!out) {
        *error = GPUPROF_NO_MEMORY;
        return NULL;
    }
    put_kind(k, kind, out);
    long length = ftell(out);
    fclose(out);
    length = length < 0 ? 0 : length < TEXT_BYTES ? length : TEXT_BYTES - 1;
    *error = kernel_name_intern(k->texts, (const uint8_t *)text, (size_t)length, &kind->text);
    return kind->text;
}

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

/* Removes the innermost call. */
static struct library_call *library_calls_pop(struct library_calls *l, struct library_stack *stack)
{
    l->result = stack->open[--stack->count];
    return &l->result;
}

/* The index of the open call of that library, or stack->count. */
static uint32_t library_calls_place_of(const struct library_stack *stack, unsigned domain)
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

static void add_message(struct library_group *group, const struct library_call *call)
{
    struct library_message *all = &group->message;
    const struct library_message *own = &call->message;
    bool is_same = all->communicator == own->communicator;
    all->communicator = is_same ? all->communicator : 0;
    all->is_collective &= is_same && own->is_collective && call->stream == group->stream;
    all->is_rooted |= own->is_rooted;
}

/* Updates the group after an NCCL call: adds a message without work, or starts anew. */
static void queue(struct library_group *group, const struct library_call *call, uint64_t bytes)
{
    bool is_end = call->function->does == API_DOES_GROUP_END;
    bool is_begin = call->function->does == API_DOES_GROUP_BEGIN;
    uint32_t depth = is_end ? group->depth - !!group->depth : group->depth + is_begin;
    bool is_done = (is_end || is_message(call->function)) && call->has_work;
    if (is_done || (is_begin && depth == 1))
        *group = (struct library_group){0};
    group->depth = depth;
    if (!is_message(call->function) || call->has_work)
        return;
    if (!group->calls++) {
        group->kind = call->kind;
        group->message = call->message;
        group->stream = call->stream;
    }
    add_message(group, call);
    group->bytes += bytes;
}

static int open_call(struct library_calls *l, const struct event *e, struct library_call **call)
{
    struct library_stack *stack = library_stack(l, e->thread->index);
    const struct record *r = e->record;
    if (library_calls_place_of(stack, e->function->domain) < stack->count) {
        *call = library_calls_pop(l, stack);
        return LIBRARY_LEFT;
    }
    if (!stack->open && !(stack->open = calloc(LIBRARIES_OPEN_MAX, sizeof *stack->open)))
        return GPUPROF_NO_MEMORY;
    assert(stack->count < LIBRARIES_OPEN_MAX); /* there is one call per library */
    struct library_call *open = &stack->open[stack->count];
    *open = (struct library_call){.function = e->function,
                                  .process = e->process,
                                  .thread = e->thread,
                                  .begin_ns = e->begin_ns,
                                  .end_ns = e->begin_ns,
                                  .stack = r->stack_id,
                                  .arg_count = r->arg_count};
    memcpy(open->args, r->args, r->arg_count * sizeof *r->args);
    int64_t kind = library_kind_of(l->kinds, e, &open->message, &open->stream);
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
    uint32_t at = library_calls_place_of(stack, e->function->domain);
    if (at == stack->count || stack->open[at].function != e->function)
        return LIBRARY_SAME;
    *call = library_calls_pop(l, stack);
    if (at < stack->count)
        return LIBRARY_LEFT;
    struct library_call *closed = *call;
    closed->end_ns = e->begin_ns > closed->begin_ns ? e->begin_ns : closed->begin_ns;
    closed->result = r->result;
    for (unsigned i = 0; i < r->arg_count && i < RECORD_ARGS_MAX; i++)
        closed->args[i] |= r->args[i]; /* each is known at one end only, and 0 at the other */
    closed->arg_count = r->arg_count > closed->arg_count ? r->arg_count : closed->arg_count;
    queue(&stack->group, closed, library_kind(l->kinds, closed->kind)->shape.bytes);
    return LIBRARY_CLOSED;
}

int library_calls_take(struct library_calls *l, const struct event *e, struct library_call **call)
{
    return e->record->type == RECORD_LIBRARY_BEGIN ? open_call(l, e, call) : close_call(l, e, call);
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
    struct library_kind all = {.function = call->function,
                               .shape = {.batch = group->calls, .bytes = group->bytes},
                               .is_group = true};
    return library_calls_number_of(l->kinds, &all);
}

bool library_calls_launch(struct library_calls *l, const struct event *e)
{
    struct library_stack *stack = library_stack(l, e->thread->index);
    struct library_call *call = stack->count ? &stack->open[stack->count - 1] : NULL;
    if (!call || e->function->does != API_DOES_LAUNCH || e->record->flags & RECORD_CAPTURED)
        return false;
    bool is_group = call->function->does == API_DOES_GROUP_END && stack->group.calls;
    struct library_message *message = is_group ? &stack->group.message : &call->message;
    uint64_t stream;
    if (!message->is_collective || !function_stream(e->function, e->record, &stream) ||
        stream != (is_group ? stack->group.stream : call->stream))
        return false;
    message->is_collective = false;
    return true;
}

struct library_call *library_calls_drain(struct library_calls *l, uint32_t thread_index,
                                         const uint64_t *last_ns)
{
    struct library_stack *stack = library_stack(l, thread_index);
    if (!stack->count)
        return NULL;
    struct library_call *call = library_calls_pop(l, stack);
    uint64_t end_ns = last_ns[call->process->index];
    call->seen_ns = call->end_ns;
    call->end_ns = end_ns > call->begin_ns ? end_ns : call->begin_ns;
    return call;
}
