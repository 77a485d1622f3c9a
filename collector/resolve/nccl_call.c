/* SPDX-License-Identifier: Apache-2.0 */
#include "resolve/nccl_call.h"

#include <string.h>

#include "api/api.h"

#define STATIC_SCHEMAS (1u << 24) /* the first of those whose numbers a library chooses itself */

/* Behind the communicator: its bytes, if it is a transfer, and 32-bit numbers. A payload may be
 * longer: later versions add to the end. */
struct form {
    bool is_known;
    bool has_bytes;
    uint8_t count;
    uint8_t numbers[3]; /* enum nccl_number */
};

static const struct form forms[] = {
    [0] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommInitRank */
    [2] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommDestroy */
    [3] = {true, false, 3, {NCCL_RANKS, NCCL_RANK, NCCL_DEVICE}}, /* CommAbort */
    [4] = {true, true, 0, {0}},                                   /* AllGather */
    [5] = {true, true, 1, {NCCL_REDUCTION}},                      /* AllReduce */
    [6] = {true, true, 1, {NCCL_ROOT}},                           /* Broadcast */
    [7] = {true, true, 1, {NCCL_REDUCTION}},                      /* ReduceScatter */
    [8] = {true, true, 2, {NCCL_ROOT, NCCL_REDUCTION}},           /* Reduce */
    [9] = {true, true, 1, {NCCL_PEER}},                           /* Send */
    [10] = {true, true, 1, {NCCL_PEER}},                          /* Recv */
    [16] = {true, true, 0, {0}},                                  /* AlltoAll */
    [17] = {true, true, 1, {NCCL_ROOT}},                          /* Gather */
    [18] = {true, true, 1, {NCCL_ROOT}},                          /* Scatter */
};

bool nccl_call_of(const struct range *range, struct nccl_call *call)
{
    uint64_t number = range->schema - STATIC_SCHEMAS;
    if (!range->schema || !range->domain_text || strcmp(range->domain_text->raw, "NCCL") != 0 ||
        number >= sizeof forms / sizeof forms[0] || !forms[number].is_known)
        return false;
    const struct form *form = &forms[number];
    unsigned first = form->has_bytes ? 2 : 1; /* word of the numbers */
    /* Older versions have no communicator, and so less. */
    if (range->data_bytes < 8 * (first + (form->count + 1u) / 2))
        return false;
    *call = (struct nccl_call){.communicator = range->data[0],
                               .has_bytes = form->has_bytes,
                               .bytes = form->has_bytes ? range->data[1] : 0};
    for (unsigned i = 0; i < form->count; i++) {
        uint64_t word = range->data[first + i / 2] >> (i % 2 ? 32 : 0);
        call->numbers[form->numbers[i]] = (int32_t)(uint32_t)word;
        call->has |= 1u << form->numbers[i];
    }
    return true;
}

bool nccl_is_kernel(const struct kernel_name *name)
{
    return strncmp(name->shown, "nccl", 4) == 0;
}

const char *nccl_reduction_text(int32_t reduction)
{
    static const char *const texts[] = {"sum", "prod", "max", "min", "avg"};
    return reduction >= 0 && reduction < 5 ? texts[reduction] : NULL;
}

/* ---- what a thread does next ----------------------------------------------------------------- */

static void talk(struct nccl_talk *t, const struct key_map *handles, const struct event *e)
{
    const struct function *f = e->function;
    uint64_t handle = function_arg(f, e->record, "comm", 0);
    uint64_t on = key_map_get(handles, (struct key){e->process->index, handle, 0});
    uint64_t number = function_arg(f, e->record, "sequence", 0);
    uint64_t stream = function_arg(f, e->record, "stream", 0);
    if (!t->depth)
        *t = (struct nccl_talk){0}; /* what was left by longjmp */
    t->is_mixed |= !on || (t->communicator && t->communicator != on);
    t->communicator = t->is_mixed ? 0 : on;
    t->is_rooted |= function_arg_place(f, "root") != UINT32_MAX;
    t->is_other |= t->is_mixed || f->does != API_DOES_COLLECTIVE || !number ||
                   (t->number && t->stream != stream);
    if (!t->number && !t->is_other) {
        t->number = number;
        t->stream = stream;
    }
}

void nccl_talk_call(struct nccl_talk *t, const struct key_map *handles, const struct event *e)
{
    bool begins = e->record->type == RECORD_LIBRARY_BEGIN;
    switch (e->function->does) {
    case API_DOES_COLLECTIVE:
    case API_DOES_P2P:
    case API_DOES_P2P_RECEIVE:
        if (begins)
            talk(t, handles, e);
        break;
    case API_DOES_GROUP_BEGIN:
        if (begins && !t->depth++)
            *t = (struct nccl_talk){.depth = 1};
        break;
    case API_DOES_GROUP_END: t->depth -= !begins && t->depth; break;
    default: return;
    }
    t->is_open = begins;
    if (!begins && !t->depth)
        *t = (struct nccl_talk){0};
}

/* The first kernel that is launched in the call, or at the end of the group, is of the first
 * collective in it. */
uint64_t nccl_talk_launch(struct nccl_talk *t, const struct event *e)
{
    uint64_t stream, number = t->number;
    if (!t->is_open || !number || t->is_other || !e->record->correlation ||
        e->function->does != API_DOES_LAUNCH || e->record->flags & RECORD_CAPTURED ||
        !function_stream(e->function, e->record, &stream) || stream != t->stream)
        return 0;
    t->is_other = true;
    return number;
}
