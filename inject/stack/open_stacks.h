/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stacks of calls that do not return: of one that has been open for a second, the writer reads
 * the thread's Python frames, once, and says in the thread's chunk which stack they are
 * (LIVE_CHUNK_OPEN_STACK). A thread inside a call runs no Python, so that its frames stay what they
 * are; if the call is over when they have been read, they are thrown away. Nothing is asked of the
 * thread itself: its native frames change while it runs, and only it could say what they are.
 */
#ifndef GPUPROF_INJECT_OPEN_STACKS_H
#define GPUPROF_INJECT_OPEN_STACKS_H

struct thread;

/* Once a second. */
void open_stacks_tick(struct thread *writer);

#endif
