/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping the program's signal handlers out of our critical sections. */
#ifndef GPUPROF_INJECT_SIGNALS_H
#define GPUPROF_INJECT_SIGNALS_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Blocks all signals of the calling thread, also the one by which the C library cancels threads: a
 * handler that leaves by longjmp would leave a lock behind that its thread holds for ever. One
 * stays open: by it setuid, setgid and setgroups reach every thread. They hold the C library's lock
 * of stacks until each has answered, and we may be waiting for that lock. Returns what
 * restore_signals takes.
 */
uint64_t block_signals(void);
void restore_signals(uint64_t mask);

/* Leaves only the C library's own signals open: for threads of ours. */
void block_program_signals(void);

/* Takes away which of these, all blocked, are pending for this thread. No thread is cancelled here,
 * as it would be in sigtimedwait. errno is not kept. */
void drop_pending(const sigset_t *signals);

/* The size of this thread's stack for signal handlers, if it is on that; else 0. errno is kept. */
size_t signal_stack_bytes(void);

#endif
