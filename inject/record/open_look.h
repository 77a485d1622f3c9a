/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The calls that a thread has not returned from, as its chunk tells, to whoever looks from another
 * thread: its thread, or a stray write of the program's, may change anything while it is read.
 */
#ifndef GPUPROF_INJECT_OPEN_LOOK_H
#define GPUPROF_INJECT_OPEN_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct call_seen {
    uint64_t begin; /* ticks */
    uint64_t head;  /* word 0 of its record */
};

/* The outermost and the innermost one; they may be the same. False: none is open, or the thread
 * went on meanwhile. */
bool open_calls_look(const uint8_t *chunk, struct call_seen *outermost,
                     struct call_seen *innermost);

#endif
