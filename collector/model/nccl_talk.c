/* SPDX-License-Identifier: Apache-2.0 */
#include "model/nccl_talk.h"

#include "api/api.h"

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
