/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are passed by so that gpuprof costs less (--overhead-max): event records and queries,
 * and all but one of some launches and copies. The one says for how many it stands: itself and
 * those of its thread and class that were passed by since the one before. All others are always
 * recorded: allocations, synchronisations, graphs; and everything while a stream is captured, and
 * what only CUPTI's callbacks show.
 */
#ifndef GPUPROF_INJECT_PASS_BY_H
#define GPUPROF_INJECT_PASS_BY_H

#include "hook/call_place.h"

/* Replaces everything at the call's begin; returns true if the call is passed by. `begin`: in
 * ticks, if the call is to be timed. */
bool pass_by(struct thread *t, struct call *c, const struct call_site *site, uintptr_t caller,
             uint64_t begin);

/* The record of a call that stands for others says for how many. If it has no record after all, or
 * one that does not say so, the next call of its class stands for them. */
static inline void pass_take_weight(struct thread *t)
{
    t->passer.pending[t->weighed_class] -= t->weight - 1;
    t->weighed = NULL;
}

/* From here on the call is the newest that is passed by or left out; its mode says which. */
static inline void pass_enter(struct thread *t, struct call *c, enum call_mode mode)
{
    c->below = t->passed;
    c->mark = call_mark(c, mode);
    t->passed = c;
    t->ended = 0; /* a time in which nothing is recorded is no gap */
    t->limit = 0; /* see thread_usual_limit */
}

/* The call is over, or found to be over. */
void pass_leave(struct thread *t, struct call *c);

/* Called when a call that was passed by is over. */
void pass_end(struct thread *t, struct call *c, const struct call_site *site, int result);

#endif
