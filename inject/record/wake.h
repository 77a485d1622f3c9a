/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes the writer thread and waits for it: through futexes only, from any thread. */
#ifndef GPUPROF_INJECT_WAKE_H
#define GPUPROF_INJECT_WAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* Asks the writer to check now. Never blocks; async-signal-safe. */
void writer_wake(void);

/* Seals and stores everything appended so far; waits at most `ns`. `reason` (enum end_reason, 0:
 * none) becomes an END record. Returns false if it was not done in time. Async-signal-safe. */
bool writer_flush(enum end_reason reason, uint64_t ns);

#endif
