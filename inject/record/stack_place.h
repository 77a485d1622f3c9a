/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The relation of two frames of one thread. A thread may have several stacks: its own, one for
 * signal handlers (sigaltstack), and those of coroutines. On one stack, frames below a current one
 * are gone; addresses on different stacks cannot be compared. The thread's own stack and the signal
 * handlers' are known; coroutines' stacks are not, and then no frame is assumed to be gone. Needs a
 * few system calls, so it is used only where the fast check does not decide. Any thread;
 * async-signal-safe; keeps errno.
 */
#ifndef GPUPROF_INJECT_STACK_PLACE_H
#define GPUPROF_INJECT_STACK_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* Is the frame at `outer` certainly gone, as seen from the current one at `inner`? */
bool stack_place_is_gone(uintptr_t outer, uintptr_t inner);

/* Is this thread on its stack for signal handlers, and `outer` on another? */
bool stack_place_is_handlers(uintptr_t outer);

/* Returns the word there, or 0 if it is unmapped, as a coroutine's stack may be meanwhile. */
uintptr_t stack_place_word(uintptr_t address);

#endif
