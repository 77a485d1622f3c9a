/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that observes the program's threads from outside. It exists while a recording samples
 * (--sample) or looks into gaps (--gaps). It calls each row of `pulses` in host_thread.c at the
 * time that the row has requested.
 */
#ifndef GPUPROF_INJECT_HOST_THREAD_H
#define GPUPROF_INJECT_HOST_THREAD_H

#include <stdint.h>

struct thread;

/* A task of the thread: `me` is its own state, `now_ns` is CLOCK_MONOTONIC. Returns when to call it
 * again, on that clock. It may be called earlier or later. */
typedef uint64_t (*host_pulse)(struct thread *me, uint64_t now_ns);

/* Called by the writer when a recording begins: starts the thread if it has anything to do. */
void host_start(struct thread *writer);

/* Recording stops or resumes: the thread checks now. Any thread; async-signal-safe. */
void host_wake(void);

/* The process ends: waits until the thread has appended what it knows, at most `ns`. */
void host_end(uint64_t ns);

/* Call it in the child of a fork, where the thread does not exist. */
void host_forget(void);

#endif
