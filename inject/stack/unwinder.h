/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libunwind's unw_backtrace, which walks most stacks. It is loaded from our folder under its own
 * name, and used only where it is safe. It keeps rules by address for ever, in each thread, and
 * reads the stack unchecked, so that after a dlclose it would walk a newly mapped object by the
 * rules of the previous one. In that case, or if it is not available, walk.c uses the rules of
 * cfi.h.
 *
 * Signals are blocked meanwhile: a handler that left it by longjmp would leave its tables half
 * written (it unmaps one before it notes the next). These two system calls are a large part of the
 * cost of a stack of ten frames. It needs half a MiB for each thread whose stacks it takes (its
 * table of rules), and one key of pthread_key_create.
 */
#ifndef GPUPROF_INJECT_UNWINDER_H
#define GPUPROF_INJECT_UNWINDER_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/*
 * Loads it when the recording runs, on one of our threads. The caller waits only a moment: a
 * constructor that holds the loader's lock may be waiting for the caller. It does wait, since a
 * child made by _Fork or a raw clone meanwhile would inherit the loader's lock.
 */
void unwinder_start(void);

/* Call it in the child of a fork. */
void unwinder_reset(void);

/* Is it known whether it is available? */
bool unwinder_is_settled(void);

/*
 * Takes the calling thread's return addresses, innermost first, from a frame of ours on; returns
 * their number. 0: it cannot be used now. Do not use it in a signal handler before it was used on
 * this thread, since it allocates then. Signals are blocked meanwhile.
 */
unsigned unwinder_take(struct thread *t, uint64_t *addresses, unsigned max);

#define UNWINDER_READY "libunwind"

/* Returns UNWINDER_READY, or why it cannot be used. */
const char *unwinder_state(void);

#endif
