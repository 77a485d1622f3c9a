/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fork in the middle of our own record-keeping. Only a signal handler makes one; its child comes
 * back to where the handler interrupted us and goes on there, on memory that it shares with its
 * parent. It gets a copy in that place, made before the fork. The system calls fork and clone tell
 * nobody beforehand, so this is for the C library's fork() only. So is the wait for threads that we
 * have inside the loader (objects.h).
 */
#ifndef GPUPROF_INJECT_FORKED_H
#define GPUPROF_INJECT_FORKED_H

/* Once; allocates. */
void forked_register(void);

#endif
