/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The signal by which timers tell a thread that it has run for another period: a real-time signal
 * for which the program has no handler. If the program takes that number later, it gets it, and we
 * use another.
 */
#ifndef GPUPROF_INJECT_SAMPLE_SIGNAL_H
#define GPUPROF_INJECT_SAMPLE_SIGNAL_H

#include <signal.h>
#include <stdbool.h>

/* A tick; `value` is the timer's. Runs with all signals blocked, on the thread's alternate signal
 * stack if it has one. */
typedef void (*sample_tick_fn)(union sigval value, unsigned periods, const void *context);

/* Installs our handler for a free number, but not for `taken` (0: any). Returns the number; 0: none
 * is free. */
int sample_signal_take(sample_tick_fn tick, bool (*is_ours)(union sigval value), int taken);

/* Returns that number, or 0. Async-signal-safe. */
int sample_signal_number(void);

/* Is our handler still installed? */
bool sample_signal_is_kept(void);

#endif
