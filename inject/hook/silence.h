/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread did while it made no call: its next call after a silence of --silence takes its
 * stack when it begins, so that the place has a line, and tells how much of the time the thread
 * ran, and how much it waited for a processor. Where the thread was when it fell silent nobody can
 * know beforehand, so the times count from the last reading: at the end of the silence before, of a
 * call that lasted as long, or of the thread's first call.
 *
 * A look (stack and readings, four system calls) is off the short way, and is skipped where it
 * would cost more than SILENCE_PART of the thread's time: see silence.c. All of it is done by the
 * thread itself, from inside our own code. errno is kept.
 */
#ifndef GPUPROF_INJECT_SILENCE_H
#define GPUPROF_INJECT_SILENCE_H

#include "record/thread.h"

/* For how many ticks has the thread, whose call begins at `begin`, been silent? 0: not for long
 * enough to be looked at, or nobody knows. */
static inline uint64_t silence_ticks(const struct thread *t, uint64_t begin)
{
    uint64_t ticks = begin - t->ended;
    return t->ended && ticks >= atomic_load_explicit(&fork_page.silent_ticks, memory_order_relaxed)
               ? ticks
               : 0;
}

/* May the thread be looked at now? */
bool silence_may_look(struct thread *t, uint64_t begin);

/* Appends what it did before `begin`, when it had been silent for so many ticks; the look, with the
 * stack, began at `begin` and ends with this. */
void silence_tell(struct thread *t, uint64_t begin, uint64_t ticks);

/* A call of `ticks` has ended: what is read next counts from here if that was as long as a silence,
 * or the first call. */
void silence_called(struct thread *t, uint64_t ticks);

/* For feature.h. */
void silence_start(void);
void silence_attached(struct thread *t);
void silence_tick(struct thread *writer);
void silence_reset(void);

#endif
