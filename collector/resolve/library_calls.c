/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/library_calls.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/array.h"
#include "base/memory.h"
#include "base/text.h"
#include "record/gpu_record.h"

#define PLAN_TEXT_BYTES 300 /* bytes of a plan in the text of a kind */

/* Arguments of a call, by meaning: numbers of its shape, and these. */
enum { A_COUNT = SHAPE_NUMBERS, A_TYPE, A_COMMUNICATOR, A_SEQUENCE, A_STREAM, A_ROOT, ARGUMENTS };

/* The argument with that label; a larger number than `most` becomes `most`. */
static const struct {
    const char *label;
    unsigned is;
    uint64_t most; /* 0: any */
} members[] = {
    {"m", SHAPE_M, 0},
    {"n", SHAPE_N, 0},
    {"k", SHAPE_K, 0},
    {"batch", SHAPE_BATCH, 0},
    {"mnk", SHAPE_MNK, 0},
    {"a_type", SHAPE_A_TYPE, LIBRARY_TYPE_NONE},
    {"b_type", SHAPE_B_TYPE, LIBRARY_TYPE_NONE},
    {"c_type", SHAPE_C_TYPE, LIBRARY_TYPE_NONE},
    {"d_type", SHAPE_D_TYPE, LIBRARY_TYPE_NONE},
    {"compute", SHAPE_COMPUTE, UINT16_MAX},
    {"trans_a", SHAPE_TRANS_A, LIBRARY_TYPE_NONE},
    {"trans_b", SHAPE_TRANS_B, LIBRARY_TYPE_NONE},
    {"side", SHAPE_SIDE, 1},
    {"count", A_COUNT, 0},
    {"type", A_TYPE, LIBRARY_TYPE_NONE},
    {"bytes", SHAPE_BYTES, 0},
    {"plan", SHAPE_PLAN, 0},
    {"comm", A_COMMUNICATOR, 0},
    {"sequence", A_SEQUENCE, 0},
    {"stream", A_STREAM, 0},
    {"root", A_ROOT, 0},
};

#define MEMBERS (sizeof members / sizeof members[0])

struct library_form {
    bool is_made;
    uint8_t places[MEMBERS]; /* by member: index of the argument of the function + 1; 0: none */
};

static const struct number_kind kind_kind = NUMBER_KEY(struct library_kind, is_group);

void library_kinds_init(struct library_kinds *k, struct kernel_names *texts, uint64_t bytes,
                        uint32_t process_count)
{
    uint64_t more = bytes / KIND_BYTES;
    *k = (struct library_kinds){.texts = texts, .process_count = process_count};
    k->count_max = more < KINDS_MAX - KINDS_FREE ? KINDS_FREE + (uint32_t)more : KINDS_MAX;
    k->plans = memory_new(process_count + 1u, sizeof *k->plans);
}

void library_kinds_release(struct library_kinds *k)
{
    for (uint32_t i = 0; i < k->process_count; i++)
        kernel_handles_release(k->texts, &k->plans[i]);
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
static void learn_communicator(struct library_kinds *k, const struct event *e)
{
    const struct record *r = e->record;
    uint32_t ranks = (uint32_t)record_arg(r, COMMUNICATOR_RANKS);
    struct key id = {record_arg(r, COMMUNICATOR_ID), ranks, 0};
    struct communicator made = {id.a, ranks};
    struct key handle = {e->process->index, record_arg(r, COMMUNICATOR_HANDLE), 0};
    uint32_t number = KEY_MAP_ITEM(&k->communicator_ids, id, k->communicators,
                                   k->communicator_count, COMMUNICATORS_MAX, &made);
    if (number)
        key_map_set(&k->handles, handle, number);
}

void library_kinds_learn(struct library_kinds *k, const struct event *e)
{
    const struct record *r = e->record;
    if (r->type == RECORD_COMMUNICATOR)
        learn_communicator(k, e);
    else if (r->bytes)
        kernel_name_set(k->texts, &k->plans[e->process->index], record_arg(r, LIBRARY_PLAN_PLAN),
                        r->bytes, r->byte_count);
}

static const struct library_form *form_of(struct library_kinds *k, const struct function *f)
{
    k->forms = array_reach(k->forms, &k->form_count, f->index, sizeof *k->forms);
    struct library_form *form = &k->forms[f->index];
    for (unsigned i = 0; !form->is_made && i < f->arg_count; i++)
        for (unsigned m = 0; m < MEMBERS; m++)
            if (strcmp(f->args[i].label, members[m].label) == 0)
                form->places[m] = (uint8_t)(i + 1);
    form->is_made = true;
    return form;
}

/* Reads the arguments, with bits of the present ones in SHAPE_HAS. */
static void read_arguments(const struct library_form *form, const struct record *r, uint64_t *a)
{
    memset(a, 0, ARGUMENTS * sizeof *a);
    a[SHAPE_COMPUTE] = UINT16_MAX;
    for (unsigned i = SHAPE_A_TYPE; i <= SHAPE_TRANS_B; i++)
        a[i] = LIBRARY_TYPE_NONE;
    for (unsigned m = 0; m < MEMBERS; m++) {
        if (!form->places[m] || form->places[m] > r->arg_count)
            continue;
        uint64_t value = r->args[form->places[m] - 1], most = members[m].most;
        a[members[m].is] = most && value > most ? most : value;
        a[SHAPE_HAS] |= 1ull << members[m].is;
    }
}

/* Converts an ncclDataType_t to a cudaDataType. */
static uint8_t message_type(uint64_t type)
{
    static const uint8_t types[] = {3, 8, 10, 12, 24, 26, 2, 0, 1, 14, 28, 29};
    return type < sizeof types ? types[type] : LIBRARY_TYPE_NONE;
}

static void find_message(const struct library_kinds *k, const struct event *e, uint64_t *a,
                         struct library_message *message)
{
    struct key handle = {e->process->index, a[A_COMMUNICATOR], 0};
    message->communicator = a[A_COMMUNICATOR] ? (uint32_t)key_map_get(&k->handles, handle) : 0;
    message->sequence = a[A_SEQUENCE];
    message->is_collective =
        e->function->does == API_DOES_COLLECTIVE && message->communicator && a[A_SEQUENCE];
    message->is_rooted = shape_has(a, A_ROOT);
    if (message->communicator)
        a[SHAPE_RANKS] = k->communicators[message->communicator - 1].ranks;
    if (shape_has(a, A_COUNT) && shape_has(a, A_TYPE))
        library_shape_count(a, a[A_COUNT], message_type(a[A_TYPE]));
}

static uint32_t library_calls_number_of(struct library_kinds *k, const struct library_kind *wanted)
{
    struct library_kind others = {.function = wanted->function, .is_others = true};
    uint32_t number = NUMBER_ADD(&k->numbers, &kind_kind, k->list, k->count,
                                 wanted->is_others ? UINT32_MAX : k->count_max, wanted);
    return number ? number : library_calls_number_of(k, &others);
}

uint32_t library_kind_of(struct library_kinds *k, const struct event *e,
                         struct library_message *message, uint64_t *stream)
{
    uint64_t a[ARGUMENTS];
    read_arguments(form_of(k, e->function), e->record, a);
    if (shape_has(a, SHAPE_BATCH) && !a[SHAPE_BATCH]) /* an empty batch */
        a[SHAPE_HAS] &= ~(1ull << SHAPE_M | 1ull << SHAPE_N | 1ull << SHAPE_K);
    if (a[SHAPE_D_TYPE] == LIBRARY_TYPE_NONE)
        a[SHAPE_D_TYPE] = a[SHAPE_C_TYPE];
    if (a[SHAPE_PLAN])
        a[SHAPE_PROCESS] = e->process->index + 1;
    find_message(k, e, a, message);
    *stream = a[A_STREAM];
    a[SHAPE_HAS] &= 1ull << SHAPE_M | 1ull << SHAPE_N | 1ull << SHAPE_K;
    struct library_kind wanted = {.function = e->function};
    memcpy(wanted.shape, a, sizeof wanted.shape);
    return library_calls_number_of(k, &wanted);
}

/* ---- work and texts of kinds ----------------------------------------------------------------- */

static const struct kernel_name *plan_of(const struct library_kinds *k, const uint64_t *shape)
{
    return shape[SHAPE_PLAN]
               ? kernel_name_of(&k->plans[shape[SHAPE_PROCESS] - 1], shape[SHAPE_PLAN])
               : NULL;
}

struct library_work library_kind_work(const struct library_kinds *k, uint32_t number)
{
    const struct library_kind *kind = library_kind(k, number);
    const struct kernel_name *plan = plan_of(k, kind->shape);
    if (kind->is_others)
        return (struct library_work){.type = LIBRARY_TYPE_NONE};
    if (kind->shape[SHAPE_PLAN])
        return plan ? library_plan_work(plan->raw)
                    : (struct library_work){.type = LIBRARY_TYPE_NONE};
    return library_work_of(kind->function->does, kind->shape);
}

static void put_kind(const struct library_kinds *k, const struct library_kind *kind, FILE *out)
{
    const struct kernel_name *plan = plan_of(k, kind->shape);
    fputs(kind->function->name, out);
    if (kind->is_others)
        fputs(" (others)", out);
    else if (kind->is_group)
        fprintf(out, " of %" PRIu64 " calls, %" PRIu64 " bytes", kind->shape[SHAPE_BATCH],
                kind->shape[SHAPE_BYTES]);
    else if (plan)
        fprintf(out, " %.*s", PLAN_TEXT_BYTES, plan->raw);
    else
        library_shape_put(kind->shape, out);
}

const struct kernel_name *library_kind_text(struct library_kinds *k, uint32_t number)
{
    struct library_kind *kind = &k->list[number - 1];
    struct new_text made;
    if (kind->text)
        return kind->text;
    FILE *out = new_text_begin(&made);
    put_kind(k, kind, out);
    char *text = new_text_end(&made, out);
    kind->text = kernel_name_intern(k->texts, text, made.length);
    free(text);
    return kind->text;
}

/* ---- groups ---------------------------------------------------------------------------------- */

static bool is_message(const struct function *f)
{
    return f->does == API_DOES_COLLECTIVE || f->does == API_DOES_P2P ||
           f->does == API_DOES_P2P_RECEIVE;
}

/* Adds a message without work, or starts anew. */
void library_group_add(struct library_group *group, const struct library_kinds *k, uint32_t kind,
                       const struct library_message *message, uint64_t stream, bool has_work)
{
    const struct library_kind *its = library_kind(k, kind);
    const struct function *f = its->function;
    bool is_end = f->does == API_DOES_GROUP_END, is_begin = f->does == API_DOES_GROUP_BEGIN;
    uint32_t depth = is_end ? group->depth - !!group->depth : group->depth + is_begin;
    bool is_done = (is_end || is_message(f)) && has_work;
    if (is_done || (is_begin && depth == 1))
        *group = (struct library_group){0};
    group->depth = depth;
    if (!is_message(f) || has_work)
        return;
    if (!group->calls++) {
        group->kind = kind;
        group->message = *message;
        group->stream = stream;
    }
    struct library_message *all = &group->message;
    bool is_same = all->communicator == message->communicator;
    all->communicator = is_same ? all->communicator : 0;
    all->is_collective &= is_same && message->is_collective && stream == group->stream;
    all->is_rooted |= message->is_rooted;
    group->bytes += its->shape[SHAPE_BYTES];
}

uint32_t library_group_kind(struct library_kinds *k, const struct library_group *group,
                            const struct function *function)
{
    struct library_kind all = {
        .function = function,
        .shape = {[SHAPE_BATCH] = group->calls, [SHAPE_BYTES] = group->bytes},
        .is_group = true};
    return group->calls == 1 ? group->kind : library_calls_number_of(k, &all);
}
