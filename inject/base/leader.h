/* SPDX-License-Identifier: Apache-2.0 */
/* Detects that the process's first thread has called pthread_exit. The kernel keeps it as a zombie
 * until all other threads have ended; it answers signal 0 like a living thread. */
#ifndef GPUPROF_INJECT_LEADER_H
#define GPUPROF_INJECT_LEADER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Returns true if the first thread has ended, and then stores the number of threads, including it,
 * in `thread_count` (may be NULL). Returns false if /proc does not say. Async-signal-safe, keeps
 * errno.
 */
bool leader_has_ended(uint32_t *thread_count);

#endif
