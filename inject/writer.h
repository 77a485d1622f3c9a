/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread: seals what threads have appended into blocks of the stream file, once a thread
 * has enough for a good block, once a second in any case, and when somebody waits for it. When
 * nobody else is left, because the first thread had ended by pthread_exit, it ends the process.
 */
#ifndef GPUPROF_INJECT_WRITER_H
#define GPUPROF_INJECT_WRITER_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "record.h"

/* Starts the thread. `mask` is the calling thread's own. False: it could not be (errno). */
bool writer_start(const sigset_t *mask);

/* Asks the writer to look now. Never blocks; async-signal-safe. */
void writer_wake(void);

/*
 * Has everything appended so far sealed and stored; waits at most `ns`. `reason` (enum end_reason,
 * 0 = none) becomes an END record. False: not done in time. Async-signal-safe.
 */
bool writer_flush(enum end_reason reason, uint64_t ns);

/* In the child of a fork: there is no writer. */
void writer_forget(void);

#endif
