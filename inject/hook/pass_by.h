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

/*
 * In the place of all that the call's begin does: true, if it, or the call that it is part of, is
 * passed by. `begin`: ticks, if it is to be timed.
 */
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

/* A call is over that is passed by. */
void pass_end(struct thread *t, struct call *c, const struct call_site *site, int result);

/* Is the newest call, as seen from the frame that `inner` lies in, one that is passed by? */
static inline bool pass_is_open(const struct thread *t, const struct call *inner)
{
    return !t->open && t->passed &&
           (uintptr_t)t->passed - (uintptr_t)inner - 1 < CALL_STACK_BYTES_MAX &&
           call_is_live(t->passed, inner);
}

#endif
