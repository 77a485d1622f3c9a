/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the program's signal handlers out of our critical sections. */
#ifndef GPUPROF_INJECT_SIGNALS_H
#define GPUPROF_INJECT_SIGNALS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Blocks all signals of the calling thread, also the one by which the C library cancels threads: a
 * handler that leaves by longjmp would leave a lock held for ever. One stays unblocked, which
 * setuid, setgid and setgroups send to every thread. They hold the C library's lock of stacks until
 * each thread has answered, and we may be waiting for that lock. Returns the mask for
 * restore_signals.
 */
uint64_t block_signals(void);
void restore_signals(uint64_t mask);

/* Leaves only the C library's internal signals unblocked; for our own threads. */
void block_program_signals(void);

/* Removes those of these signals, all blocked, that are pending for this thread. Unlike
 * sigtimedwait it is no cancellation point. Does not keep errno. */
void drop_pending(const sigset_t *signals);

/* Returns the size of this thread's alternate signal stack if the thread runs on it, else 0. Keeps
 * errno. */
size_t signal_stack_bytes(void);

#endif
