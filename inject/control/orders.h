/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `gpuprof ctl` has asked for (formats/control_text.h): done at once, or kept until its step
 * begins or its time has come. What is due at a step the thread does that begins it, so that all
 * ranks of a job turn with the same step: of a start the features are turned on one step before,
 * of a stop they are turned off LINGER_NS later, since the device comes later.
 */
#ifndef GPUPROF_INJECT_ORDERS_H
#define GPUPROF_INJECT_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "control_text.h"

struct thread;

/* A recording begins: nothing waits. */
void orders_reset(void);

/*
 * One more, by the writer or who begins a recording; `t` is the calling thread, or NULL where there
 * is nothing to record into yet. A start or stop at once takes back those that wait.
 */
enum control_answer orders_take(struct thread *t, const struct control_command *c);

/* In each pass of the writer: does what is due by its time. */
void orders_time(struct thread *writer);

/* Those that wait; at most CONTROL_WAITS_MAX. */
unsigned orders_waiting(struct control_wait *waits);

#endif
