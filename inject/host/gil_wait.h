/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GIL records, and which blocking calls (os_calls.c) belong to one: waits for the lock before it
 * was watched, and stop-the-world pauses. During these a free-threaded Python makes each thread
 * wait for a semaphore on its own stack, as for any of its locks; the address at which the thread
 * is parked distinguishes them.
 */
#ifndef GPUPROF_INJECT_GIL_WAIT_H
#define GPUPROF_INJECT_GIL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/os_table.h"

struct thread;

struct gil_wait {
    uint64_t begin, end; /* in ticks; 0: there is no wait */
    uint64_t switch_count;
    uint32_t other; /* the thread that had the lock */
    uint32_t stack;
    uint8_t part; /* enum gil_part */
    bool ran_out; /* its last slice timed out; a slice directly after it belongs to the same wait */
};

/* Returns the address at which CPython has parked the calling thread, which has waited for that
 * semaphore; 0: not known. */
uint64_t gil_parked(uint64_t semaphore);

/*
 * Takes a call of the calling thread if it waited for the lock, or until stopped threads resumed;
 * `wait` is zeroed at first. Returns true if so: then it is not an OS call, and the wait before it
 * is recorded unless this one continues it.
 */
bool gil_take_call(struct thread *t, struct gil_wait *wait, const struct os_said *said,
                   uint64_t parked, uint32_t stack);

/* Writes the record, if there is such a wait, and clears it. A record without space is counted. */
void gil_report_wait(struct thread *t, struct gil_wait *wait);

#endif
