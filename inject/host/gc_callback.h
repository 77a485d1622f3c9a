/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's garbage collections as GC records on the thread that collects: begin, end, generation,
 * and number of objects. Our C function is in gc.callbacks, which Python calls with the GIL held.
 * Python's main thread adds it once, through a pending call. No other lock is taken, and no Python
 * code of ours runs. Only the main interpreter is recorded. If a program clears gc.callbacks, the
 * recording of collections ends, which a note says.
 */
#ifndef GPUPROF_INJECT_GC_CALLBACK_H
#define GPUPROF_INJECT_GC_CALLBACK_H

struct thread;

/* Called by the writer when a recording begins, and once a second: adds the callback if --sample,
 * --gaps=on or --os needs it, and checks that it still exists. */
void gc_look(struct thread *writer);

/* Call it in the child of a fork, which inherits the callback. */
void gc_forget(void);

#endif
