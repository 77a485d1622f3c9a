/* SPDX-License-Identifier: Apache-2.0 */
/* The open calls of a thread, read from its chunk by another thread. The thread itself, or a stray
 * write of the program, may change anything meanwhile. */
#ifndef GPUPROF_INJECT_OPEN_LOOK_H
#define GPUPROF_INJECT_OPEN_LOOK_H

#include <stdbool.h>
#include <stdint.h>

struct call_seen {
    uint64_t begin; /* in ticks */
    uint64_t head;  /* word 0 of its record */
};

/* Finds the outermost and the innermost open call, which may be the same. Returns false if none is
 * open, or if the thread has gone on meanwhile. */
bool open_calls_look(const uint8_t *chunk, struct call_seen *outermost,
                     struct call_seen *innermost);

#endif
