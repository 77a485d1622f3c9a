/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The C library's calls that wait, as libgpuprof-os.so tells of them (os_table.h): OS_CALL records.
 * Such a call begins no recording, but in the child of a process that records: a worker that makes
 * no call of CUDA's. What a thread waited for before it takes part is kept, and written when it
 * does. Nothing here waits: the program may hold a lock meanwhile.
 */
#ifndef GPUPROF_INJECT_OS_CALLS_H
#define GPUPROF_INJECT_OS_CALLS_H

#include <stdint.h>

#include "host/os_table.h"

struct thread;

/* Features: from which length on calls are told of; what was kept of a thread's is written. */
void os_load(void);
void os_start(void);
void os_attached(struct thread *t);
void os_end(uint64_t ns);

/* libgpuprof-os.so, to watch condition variables in it; NULL: it is not there. */
struct os_client *os_client(void);

/* By whom conditions are watched; NULL: nobody. Before any is. */
void os_watch_conditions(bool (*condition)(enum os_condition_event event, const void *condition,
                                           uint64_t ticks, int result));

#endif
