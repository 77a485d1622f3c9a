/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GIL records, and which calls that waited (os_calls.c) belong in one: waits for the lock before it
 * was watched, and stops of the world. For these a free-threaded Python has each thread wait for a
 * semaphore on its own stack, as for any lock of its; what it is parked at tells them apart.
 */
#ifndef GPUPROF_INJECT_GIL_WAIT_H
#define GPUPROF_INJECT_GIL_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "host/os_table.h"

struct thread;

struct gil_wait {
    uint64_t begin, end; /* ticks; 0: there is none */
    uint64_t switch_count;
    uint32_t other; /* who had the lock */
    uint32_t stack;
    uint8_t part; /* enum gil_part */
    bool ran_out; /* its last slice; what follows at once is of the same wait */
};

/* At what CPython has parked the calling thread, which has waited for that semaphore; 0: not known.
 */
uint64_t gil_parked(uint64_t semaphore);

/*
 * Takes a call of that thread's, the calling one, if it waited for the lock or until stopped
 * threads went on; `wait` is zeroed at first. True then: the call is no OS call, and the wait
 * before it is told of, unless it goes on.
 */
bool gil_take_call(struct thread *t, struct gil_wait *wait, const struct os_said *said,
                   uint64_t parked, uint32_t stack);

/* Writes the record, if there is such a wait, and forgets it. What finds no room is counted. */
void gil_tell_wait(struct thread *t, struct gil_wait *wait);

#endif
