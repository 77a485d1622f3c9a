/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which thread holds Python's lock (GIL), and which threads wait for it. This is known from the
 * calls on its two condition variables, which libgpuprof-os.so hooks (os_table.h): taking the lock
 * ends with a signal on one of them, releasing it with a signal on the other, and waiting for it is
 * a wait on the latter. So both ends are exact, and the interpreter is not asked. GIL records
 * describe what lasted as long as --os says; GIL_REST records add up the rest.
 *
 * The calling thread holds the lock's mutex: nothing here waits.
 */
#ifndef GPUPROF_INJECT_GIL_EVENTS_H
#define GPUPROF_INJECT_GIL_EVENTS_H

#include <stdint.h>

struct thread;

/* For feature.h. Called once a second: watches the lock as soon as there is an interpreter. */
void gil_started(void);
void gil_tick(struct thread *writer);
void gil_end(uint64_t ns);
void gil_forget(void);

#endif
