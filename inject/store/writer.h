/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread: seals what threads have appended into blocks of the stream file, when a thread
 * has enough for a good block, at least once a second, and when a thread waits for it. If no other
 * thread is left, because the first one has called pthread_exit, it ends the process.
 */
#ifndef GPUPROF_INJECT_WRITER_H
#define GPUPROF_INJECT_WRITER_H

#include <stdbool.h>

/* Starts the thread. Returns false, after a message, on failure. */
bool writer_start(void);

/* Call it in the child of a fork, which has no writer. */
void writer_forget(void);

#endif
