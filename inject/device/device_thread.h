/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that reads device counters (--device): from the process's first recorded call on, for
 * devices on which the process has contexts. It reads ten times a second unless the setting says
 * otherwise, and less often if readings are expensive. The driver may take long to answer, or never
 * do so; then only this thread waits.
 */
#ifndef GPUPROF_INJECT_DEVICE_THREAD_H
#define GPUPROF_INJECT_DEVICE_THREAD_H

#include <stdint.h>

struct thread;

/* Called by the writer when a recording begins: starts the thread if --device is on. */
void device_start(struct thread *writer);

/* Called by the writer: reports a driver call that does not return. */
void device_tick(struct thread *writer);

/* Recording stops or resumes: makes one reading at once, and none while stopped. */
void device_turn(void);

/* Makes a last reading; waits for it, with a time limit. */
void device_end(uint64_t ns);

/* Call it in the child of a fork, where the thread does not exist. */
void device_forget(void);

#endif
