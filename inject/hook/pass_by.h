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

/* In the place of all that the call's begin does: true, if it is passed by. `begin`: ticks, if it
 * is to be timed. */
bool pass_by(struct thread *t, struct call *c, const struct call_site *site, uintptr_t caller,
             uint64_t begin);

/*
 * The record of the call that was to stand for others says for how many. If it has none after all,
 * or one that does not say so, the next of its class stands for them.
 */
static inline void pass_take_weight(struct thread *t)
{
    t->passer.pending[t->weighed_class] -= t->weight - 1;
    t->weighed = NULL;
}

/* From here on a call is the newest that is passed by or left out: which of them is its mode. */
static inline void pass_enter(struct thread *t, struct call *c, enum call_mode mode)
{
    c->below = t->passed;
    c->mark = call_mark(c, mode);
    t->passed = c;
    t->ended = 0; /* what is not recorded is no silence */
    t->limit = 0; /* thread_usual_limit */
}

/* It is over, or known to be. */
void pass_leave(struct thread *t, struct call *c);

/* A call is over that is passed by. */
void pass_end(struct thread *t, struct call *c, const struct call_site *site, int result);

#endif
