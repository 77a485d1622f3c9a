/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that looks at the program's threads from outside. It exists while a recording takes
 * samples (--sample) or looks into gaps (--gaps), and calls each row of `pulses` in host_thread.c
 * when that row has asked for it.
 */
#ifndef GPUPROF_INJECT_HOST_THREAD_H
#define GPUPROF_INJECT_HOST_THREAD_H

#include <stdint.h>

struct thread;

/*
 * What the thread does now and then: `me` is its own, `now_ns` is CLOCK_MONOTONIC. Returns when it
 * is to be called again, on that clock. It may be called earlier, and later.
 */
typedef uint64_t (*host_pulse)(struct thread *me, uint64_t now_ns);

/* By the writer, when a recording begins: starts the thread if it has anything to do. */
void host_start(struct thread *writer);

/* Calls go off or on: the thread looks now. Any thread; async-signal-safe. */
void host_wake(void);

/* The process ends: waits until the thread has appended what it knows, for at most `ns`. */
void host_end(uint64_t ns);

/* In the child of a fork: there is no such thread. */
void host_forget(void);

#endif
