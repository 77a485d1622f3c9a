/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the child of a fork begins a recording of its own, though it makes no call. Most children
 * become another program soon, or do first what only a process of one thread may (unshare). So a
 * child has no thread of ours until it has used CHILD_NS of processor time; that thread is made in
 * the handler of a sample, since no other code of ours runs in a child without calls.
 */
#ifndef GPUPROF_INJECT_SAMPLE_CHILD_H
#define GPUPROF_INJECT_SAMPLE_CHILD_H

struct walk;

/* A recording begins. Not in a handler. */
void sample_child_prepare(void);

/* In the child of a fork of a process that records. */
void sample_child_begins(void);

/*
 * In the handler of a sample; `w` is the stack of the code that was interrupted, without Python's
 * frames. Begins the recording, by a thread of its own, if that is due and `w` says that the code
 * holds none of the locks that this takes.
 */
void sample_child_look(const struct walk *w);

#endif
