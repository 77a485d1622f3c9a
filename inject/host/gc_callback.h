/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's garbage collections: begin, end, generation and what each found, as GC records on the
 * thread that collected. A C function of ours stands in gc.callbacks, where Python calls it with
 * the GIL held; it is put there once, by Python's main thread, which a pending call asks for it. No
 * other lock is taken and no Python code of ours runs. Of the main interpreter alone; a program
 * that empties gc.callbacks ends the recording of collections, which is said.
 */
#ifndef GPUPROF_INJECT_GC_CALLBACK_H
#define GPUPROF_INJECT_GC_CALLBACK_H

struct thread;

/* By the writer, when a recording begins and once a second: asks for the callback if --sample,
 * --gaps=on or --os wants it, and looks whether it is there still. */
void gc_look(struct thread *writer);

/* In the child of a fork, which inherits the callback. */
void gc_forget(void);

#endif
