/* SPDX-License-Identifier: Apache-2.0 */
/* The way to wake the writer thread, and to wait for it: by futexes only, from any thread. */
#ifndef GPUPROF_INJECT_WAKE_H
#define GPUPROF_INJECT_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* Asks the writer to look now. Never blocks; async-signal-safe. */
void writer_wake(void);

/*
 * Has everything appended so far sealed and stored; waits at most `ns`. `reason` (enum end_reason,
 * 0 = none) becomes an END record. False: not done in time. Async-signal-safe.
 */
bool writer_flush(enum end_reason reason, uint64_t ns);

#endif
