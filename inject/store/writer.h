/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer thread: seals what threads have appended into blocks of the stream file, once a thread
 * has enough for a good block, once a second in any case, and when somebody waits for it. When
 * nobody else is left, because the first thread had ended by pthread_exit, it ends the process.
 */
#ifndef GPUPROF_INJECT_WRITER_H
#define GPUPROF_INJECT_WRITER_H

#include <stdbool.h>

/* Starts the thread. False: it could not be (said). */
bool writer_start(void);

/* In the child of a fork: there is no writer. */
void writer_forget(void);

#endif
