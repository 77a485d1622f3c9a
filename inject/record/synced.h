/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call has waited for the device. The part that fetches finished records should then do so soon,
 * since a signal from outside may end the process without notice. At most one of our threads does
 * this, and `state` says what it is doing. A call reads one word, and wakes the thread only if it
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
    SYNCED_NOBODY, /* no thread fetches, or not any more */
    SYNCED_ASLEEP, /* the thread must be woken */
    SYNCED_RESTS,  /* it has just fetched, and will check again by itself */
    SYNCED_DUE,    /* there is something to fetch */
};

struct synced {
    _Atomic uint32_t state; /* enum synced_state */
    void (*wake)(void);     /* async-signal-safe; set before the state, and then constant */
};

extern HIDDEN struct synced synced;

void synced_report(uint32_t state);

/* A call has waited for the device, or may have. */
static inline void synced_note(void)
{
    uint32_t state = atomic_load_explicit(&synced.state, memory_order_relaxed);
    if (unlikely(state == SYNCED_ASLEEP || state == SYNCED_RESTS))
        synced_report(state);
}

#endif
