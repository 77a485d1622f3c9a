/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind's unw_backtrace, which walks most stacks. It is loaded beside us under a name of its
 * own, and used only where it can be trusted: it keeps the rules for an address for good, in each
 * thread, and reads the stack unchecked, so that after a dlclose it would walk a newly mapped
 * object by the rules of the one before. There, and where it cannot be had, walk.c goes on with the
 * rules of cfi.h.
 *
 * Signals are blocked meanwhile, since a handler that left it by longjmp would leave its tables
 * half written (it unmaps one before it notes the next). Those two system calls are a good part of
 * what a stack of ten frames costs by it. It takes half a MiB for each thread that has a stack
 * taken by it (its table of rules), and one key of pthread_key_create.
 */
#ifndef GPUPROF_INJECT_UNWINDER_H
#define GPUPROF_INJECT_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/*
 * Has it loaded, once the recording runs. By a thread of ours, for which the caller waits a moment
 * only: a constructor that has the loader may be waiting for the caller. But it does wait, since a
 * child made by _Fork or a raw clone meanwhile would inherit the loader's lock.
 */
void unwinder_start(void);

/* In the child of a fork. */
void unwinder_reset(void);

/* Is it known whether it can be had? */
bool unwinder_is_settled(void);

/*
 * The calling thread's return addresses, innermost first, from a frame of ours on; their number. 0:
 * it cannot be used now. Not in a signal handler before it was used once on this thread, because it
 * allocates then. Signals are blocked meanwhile.
 */
unsigned unwinder_take(struct thread *t, uint64_t *addresses, unsigned max);

#define UNWINDER_READY "libunwind"

/* That, or why it cannot be used. */
const char *unwinder_state(void);

#endif
