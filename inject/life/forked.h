/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handles a fork in the middle of our own record-keeping. Only a signal handler can cause one; its
 * child returns to the interrupted code and continues on memory that it shares with its parent. So
 * it gets a copy of that memory, made before the fork. The system calls fork and clone give no
 * notice, so this works only for the C library's fork(). The same is true of waiting for threads
 * inside the loader (objects.h).
 */
#ifndef GPUPROF_INJECT_FORKED_H
#define GPUPROF_INJECT_FORKED_H

/* Call it once; allocates. */
void forked_register(void);

#endif
