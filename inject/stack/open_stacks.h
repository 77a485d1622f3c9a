/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of calls that do not return. When a call has been open for a second, the writer reads
 * the thread's Python frames, once, and writes the stack's number to the thread's chunk
 * (LIVE_CHUNK_OPEN_STACK). A thread inside a call runs no Python code, so its frames do not change;
 * if the call is over when they have been read, they are discarded. The thread itself is not
 * involved: its native frames change while it runs, and only the thread could read them.
 */
#ifndef GPUPROF_INJECT_OPEN_STACKS_H
#define GPUPROF_INJECT_OPEN_STACKS_H

struct thread;

/* Call it once a second. */
void open_stacks_tick(struct thread *writer);

#endif
