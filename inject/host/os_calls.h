/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OS_CALL records: the C library's blocking calls, as libgpuprof-os.so reports them (os_table.h).
 * They start a recording only in the child of a process that records, for workers that make no CUDA
 * calls. What a thread waited for before it takes part is kept, and written when it does. Nothing
 * here waits: the program may hold a lock.
 */
#ifndef GPUPROF_INJECT_OS_CALLS_H
#define GPUPROF_INJECT_OS_CALLS_H

#include <stdint.h>

#include "host/os_table.h"

struct thread;

/* Features: sets the threshold for reporting calls; and writes the calls kept for a thread. */
void os_load(void);
void os_start(void);
void os_attached(struct thread *t);
void os_end(uint64_t ns);

/* Returns libgpuprof-os.so's part, for watching condition variables; NULL: it is not loaded. */
struct os_client *os_client(void);

/* Sets the function that is told about watched conditions; NULL: none. Call it before any is
 * watched. */
void os_watch_conditions(bool (*condition)(enum os_condition_event event, const void *condition,
                                           uint64_t ticks, int result));

#endif
