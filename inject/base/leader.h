/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first thread of the process after its pthread_exit: a zombie, which the kernel keeps for the
 * sake of its number until all the others have ended, and which answers to signal 0 like a living
 * one.
 */
#ifndef GPUPROF_INJECT_LEADER_H
#define GPUPROF_INJECT_LEADER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * True if it has ended; then the number of the process's threads, itself included, goes to
 * `thread_count` (may be NULL). False too where /proc does not say. Async-signal-safe, keeps errno.
 */
bool leader_has_ended(uint32_t *thread_count);

#endif
