/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads the devices' counters (--device): from the process's first recorded call
 * on, of the devices on which it has contexts, ten times a second unless the setting says
 * otherwise, or less often where a reading costs much. An answer of the driver's may take long, or
 * never come, and then only this thread waits.
 */
#ifndef GPUPROF_INJECT_DEVICE_THREAD_H
#define GPUPROF_INJECT_DEVICE_THREAD_H

#include <stdint.h>

struct thread;

/* By the writer, when a recording begins: starts it, if it is asked for. */
void device_start(struct thread *writer);

/* By the writer: a call of the driver's that does not return is told of. */
void device_tick(struct thread *writer);

/* Calls go off or on: there is a reading at once, and none in between. */
void device_turn(void);

/* A last reading, and none after it; waits for it, but not for long. */
void device_end(uint64_t ns);

/* In the child of a fork: there is no such thread. */
void device_forget(void);

#endif
