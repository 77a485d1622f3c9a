/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are passed by to reduce gpuprof's cost (--overhead-max): event records and queries,
 * and all but one of several launches and copies. The recorded one has a weight: itself and the
 * calls of its thread and class passed by since the previous one. Always recorded: allocations,
 * synchronisations, graphs, everything during a stream capture, and calls that only CUPTI's
 * callbacks show.
 */
#ifndef GPUPROF_INJECT_PASS_BY_H
#define GPUPROF_INJECT_PASS_BY_H

#include "hook/call_place.h"

/* Replaces everything at the call's begin; returns true if the call is passed by. `begin`: in ticks
 * if the call is timed, else 0. */
bool pass_by(struct thread *t, struct call *c, const struct call_site *site, uintptr_t caller,
             uint64_t begin);

/* Takes over the pending count, since the call's record has the weight. If it has no record or no
 * weight, the next call of its class stands for them. */
static inline void pass_take_weight(struct thread *t)
{
    t->passer.pending[t->weighed_class] -= t->weight - 1;
    t->weighed = NULL;
}

/* Makes the call the newest that is passed by or left out, depending on `mode`. */
static inline void pass_enter(struct thread *t, struct call *c, enum call_mode mode)
{
    c->below = t->passed;
    c->mark = call_mark(c, mode);
    t->passed = c;
    t->ended = 0; /* time without recording is not a gap */
    t->limit = 0; /* see thread_usual_limit */
}

/* Removes the call when it is over, or found to be over. */
void pass_leave(struct thread *t, struct call *c);

/* Called when a call that was passed by is over. */
void pass_end(struct thread *t, struct call *c, const struct call_site *site, int result);

#endif
