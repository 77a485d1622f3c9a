/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where two frames of one thread lie to each other. A thread may have several stacks: its own, one
 * for signal handlers (sigaltstack), those of coroutines. On one stack, what lies below a frame of
 * now is gone; between two stacks, addresses say nothing. Which stack an address lies on is known
 * of the thread's own and of the signal handlers'; of two coroutines' it is not, and then nothing
 * is taken for gone. A few system calls: for where the usual way does not answer. Any thread;
 * async-signal-safe; keeps errno.
 */
#ifndef GPUPROF_INJECT_STACK_PLACE_H
#define GPUPROF_INJECT_STACK_PLACE_H

#include <stdbool.h>
#include <stdint.h>

/* Is the frame at `outer` surely gone, as seen from that at `inner`, of now? */
bool stack_place_is_gone(uintptr_t outer, uintptr_t inner);

/* Is this thread on its stack for signal handlers, and `outer` on another? */
bool stack_place_is_handlers(uintptr_t outer);

/* The word there, or 0 where nothing is: a coroutine's stack may be unmapped meanwhile. */
uintptr_t stack_place_word(uintptr_t address);

#endif
