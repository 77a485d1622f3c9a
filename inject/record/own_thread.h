/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of our own: detached, with the program's signals blocked, and invisible to the hooks.
 * They run with the default policy, on the processors of the process's first thread. */
#ifndef GPUPROF_INJECT_OWN_THREAD_H
#define GPUPROF_INJECT_OWN_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"

/* number in this process, approximately: a thread counts until it starts to end */
extern _Atomic uint32_t own_thread_count;

/* Returns 0 or an errno value. */
int own_thread_create(void *(*body)(void *), void *data);

/* The first and the last call in the thread's function. `name` has at most 15 characters. */
void own_thread_begin(const char *name);
void own_thread_end(void);

/* Called by the thread itself from time to time: adds up its CPU time. */
void own_thread_report(enum cost_class class);

/* Returns the CPU time reported for that class by all its threads so far. */
uint64_t own_thread_ns(enum cost_class class);

/* Is it one of our threads? Approximate, like own_thread_count. */
bool own_thread_is(uint32_t tid);

/* Call it in the child of a fork, which has none. */
void own_threads_forget(void);

#endif
