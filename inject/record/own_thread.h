/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of our own: detached, deaf to the program's signals, and invisible to the hooks. They run
 * with the usual policy, where the process's first thread may run.
 */
#ifndef GPUPROF_INJECT_OWN_THREAD_H
#define GPUPROF_INJECT_OWN_THREAD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/cost.h"

extern _Atomic uint32_t own_thread_count; /* of this process, about: a thread that ends is out */

/* 0 or an errno value. */
int own_thread_create(void *(*body)(void *), void *data);

/* First and last thing in the body. `name` has at most 15 characters. */
void own_thread_begin(const char *name);
void own_thread_end(void);

/* Now and then, by the thread itself: how much processor time it has taken. */
void own_thread_tell(enum cost_class class);

/* What was told of that class, by all that had its part in turn. */
uint64_t own_thread_ns(enum cost_class class);

/* Is it one of them? About, as own_thread_count. */
bool own_thread_is(uint32_t tid);

/* In the child of a fork: there are none. */
void own_threads_forget(void);

#endif
