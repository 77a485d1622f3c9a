/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does while it gives the GPU nothing to do. About 180 times a second the thread of
 * host_thread.h looks at each thread that has made CUDA calls and is in none for GAP_NS: does it
 * run, in which system call does it wait, at which line of Python is it, and if it waits for the
 * interpreter's lock (GIL), who holds that and in which line. A SAMPLE record of SAMPLE_GAP tells.
 *
 * Looks are spread evenly over the time, so the share of looks is the share of time. Whether the
 * GPU was idle is known only later, by whoever reads the recording; nothing is looked at while a
 * thread waits for the GPU in a call that synchronises or copies. Nothing here stops the thread or
 * is done by it.
 */
#ifndef GPUPROF_INJECT_GAP_H
#define GPUPROF_INJECT_GAP_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Is it asked for? With the settings read. */
bool gap_is_wanted(void);

/* As host_pulse of host_thread.h. */
uint64_t gap_pulse(struct thread *me, uint64_t now_ns);

/* The thread of host_thread.h ends: what it has not told yet. */
void gap_end(struct thread *me);

/* By the writer: META record "page_fault_ns". */
void gap_describe(struct thread *writer, bool is_last);

/* For feature.h. */
void gap_start(void);
void gap_attached(struct thread *t);
void gap_forget(void);

#endif
