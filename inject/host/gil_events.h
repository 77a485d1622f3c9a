/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds Python's lock (GIL) and who waits for it, by the calls on its two condition variables,
 * which libgpuprof-os.so hooks (os_table.h): each take ends with a signal on one of them, each drop
 * with a signal on the other, and each wait is a wait for the latter. So both ends are exact, and
 * nobody asks the interpreter. GIL records tell of what lasted as long as --os says, GIL_REST
 * records add up the rest.
 *
 * The thread that these calls are made by holds the lock's mutex meanwhile: nothing here waits.
 */
#ifndef GPUPROF_INJECT_GIL_EVENTS_H
#define GPUPROF_INJECT_GIL_EVENTS_H

#include <stdint.h>

struct thread;

/* For feature.h. Once a second: the lock is watched as soon as there is an interpreter. */
void gil_started(void);
void gil_tick(struct thread *writer);
void gil_end(uint64_t ns);
void gil_forget(void);

#endif
