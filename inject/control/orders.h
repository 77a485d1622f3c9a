/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The commands of `gpuprof ctl` (formats/control_text.h): carried out at once, or kept until their
 * step or time comes. The thread that begins a step carries out what is due at it, so that all
 * ranks of a job change at the same step. For a start, features are turned on one step early. For a
 * stop, they are turned off LINGER_NS later, since device records arrive late.
 */
#ifndef GPUPROF_INJECT_ORDERS_H
#define GPUPROF_INJECT_ORDERS_H

#include <stdbool.h>
#include <stdint.h>

#include "control_text.h"

struct thread;

/* Call it when a recording starts: no command waits. */
void orders_reset(void);

/*
 * Takes a command. Called by the writer or the thread that starts a recording; `t` is the calling
 * thread, or NULL if nothing can be recorded yet. A start or stop that takes effect at once cancels
 * those that wait.
 */
enum control_answer orders_take(struct thread *t, const struct control_command *c);

/* Call it in each pass of the writer: carries out commands whose time has come. */
void orders_time(struct thread *writer);

/* Fills `waits` with the waiting commands; returns how many, at most CONTROL_WAITS_MAX. */
unsigned orders_waiting(struct control_wait *waits);

#endif
