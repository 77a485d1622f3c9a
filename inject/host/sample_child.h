/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When the child of a fork starts a recording of its own without making a call. Most children soon
 * exec another program, or first do something that only a single-threaded process may do (unshare).
 * So a child has no thread of ours until it has used CHILD_NS of CPU time. The handler of a sample
 * starts that thread, since no other code of ours runs in a child that makes no calls.
 */
#ifndef GPUPROF_INJECT_SAMPLE_CHILD_H
#define GPUPROF_INJECT_SAMPLE_CHILD_H

struct walk;

/* Call it when a recording begins, not in a handler. */
void sample_child_prepare(void);

/* Call it in the child of a fork of a recording process. */
void sample_child_begins(void);

/*
 * Called in the handler of a sample; `w` is the stack of the interrupted code without Python
 * frames. Starts the recording, on a thread of its own, if it is due and `w` shows that the code
 * holds none of the locks that this takes.
 */
void sample_child_look(const struct walk *w);

#endif
