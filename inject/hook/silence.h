/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did while it made no call. The next call after a gap of --silence takes its stack
 * at the begin, so that the place has a source line, and records how long the thread ran and how
 * long it waited for a processor. Since a gap cannot be foreseen, these times count from the last
 * reading: at the end of the previous gap, after a call as long as a gap, or at the thread's first
 * call, also the first after calls that were not recorded.
 *
 * An observation (stack and readings, four system calls) is not on the fast path, and is skipped if
 * it would cost more than 1/SILENCE_PART of the thread's time: see silence.c. The thread does it
 * itself, inside our own code. Preserves errno.
 */
#ifndef GPUPROF_INJECT_SILENCE_H
#define GPUPROF_INJECT_SILENCE_H

#include "record/thread.h"

/* Returns for how many ticks the thread, whose call begins at `begin`, made no call. 0: not long
 * enough, or not known. */
static inline uint64_t silence_ticks(const struct thread *t, uint64_t begin)
{
    uint64_t ticks = begin - t->ended;
    return t->ended && ticks >= atomic_load_explicit(&fork_page.silent_ticks, memory_order_relaxed)
               ? ticks
               : 0;
}

/* Returns whether the thread may be observed now. */
bool silence_may_look(struct thread *t, uint64_t begin);

/* Records what the thread did in the `ticks` before `begin`. The observation, with the stack, began
 * at `begin` and ends with this. */
void silence_report(struct thread *t, uint64_t begin, uint64_t ticks);

/* A call of `ticks` has ended; thread.ended is still that of the call before. The next times count
 * from here if it was as long as a gap, or the first call. */
void silence_called(struct thread *t, uint64_t ticks);

/* Functions for feature.h. */
void silence_start(void);
void silence_attached(struct thread *t);
void silence_tick(struct thread *writer);
void silence_reset(void);

#endif
