/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a thread does while it gives the GPU no work. About 180 times a second the thread of
 * host_thread.h looks at each thread that has made CUDA calls and has been in none for GAP_NS. Is
 * it running? In which system call does it wait, and at which line of Python is it? If it waits for
 * the GIL, which thread holds that, and at which line? The result is a SAMPLE record of SAMPLE_GAP.
 *
 * Looks are spread evenly over time, so their share is a share of time. Whether the GPU was idle is
 * known only when the recording is read. No looks are made while a thread waits for the GPU in a
 * call that synchronizes or copies. The observed thread is neither stopped nor involved.
 */
#ifndef GPUPROF_INJECT_GAP_H
#define GPUPROF_INJECT_GAP_H

#include <stdbool.h>
#include <stdint.h>

struct thread;

/* Is --gaps on? Call it when the settings were read. */
bool gap_is_wanted(void);

/* A host_pulse of host_thread.h. */
uint64_t gap_pulse(struct thread *me, uint64_t now_ns);

/* The thread of host_thread.h ends: records what is not recorded yet. */
void gap_end(struct thread *me);

/* Called by the writer: META record "page_fault_ns". */
void gap_describe(struct thread *writer, bool is_last);

/* For feature.h. */
void gap_start(void);
void gap_attached(struct thread *t);
void gap_forget(void);

#endif
