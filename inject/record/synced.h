/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The program has waited for the device: whoever fetches what the device has finished does so soon
 * after, since a signal from outside may end the process without a word. One party at most, a
 * thread of ours, says in `state` what it does; a call reads one word, and wakes it only if it
 * sleeps.
 */
#ifndef GPUPROF_INJECT_SYNCED_H
#define GPUPROF_INJECT_SYNCED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "base/compiler.h"

enum synced_state {
    SYNCED_NOBODY, /* it does not matter, or not any more */
    SYNCED_ASLEEP, /* to be woken */
    SYNCED_RESTS,  /* it has just fetched, and looks again by itself */
    SYNCED_DUE,    /* there is something to fetch */
};

struct synced {
    _Atomic uint32_t state; /* enum synced_state */
    void (*wake)(void);     /* async-signal-safe; set before the state is, for good */
};

extern HIDDEN struct synced synced;

void synced_tell(uint32_t state);

/* A call has waited for the device, or may have. */
static inline void synced_note(void)
{
    uint32_t state = atomic_load_explicit(&synced.state, memory_order_relaxed);
    if (unlikely(state == SYNCED_ASLEEP || state == SYNCED_RESTS))
        synced_tell(state);
}

#endif
