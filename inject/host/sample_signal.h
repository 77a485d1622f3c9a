/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal by which timers tell a thread that it has run for another period: a real-time signal
 * that the program has no handler for. If it takes that number for itself later, it gets it, and
 * another number is looked for.
 */
#ifndef GPUPROF_INJECT_SAMPLE_SIGNAL_H
#define GPUPROF_INJECT_SAMPLE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/*
 * A tick: `value` is the timer's. Runs with all signals blocked, on the thread's stack for handlers
 * if it has one.
 */
typedef void (*sample_tick_fn)(union sigval value, unsigned periods, const void *context);

/* Sets our handler up for a free number, not for `taken` (0: any). Returns it; 0: there is none. */
int sample_signal_take(sample_tick_fn tick, bool (*is_ours)(union sigval value), int taken);

/* That number, or 0. Async-signal-safe. */
int sample_signal_number(void);

/* Is that handler still there? */
bool sample_signal_is_kept(void);

#endif
