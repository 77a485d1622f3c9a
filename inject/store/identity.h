/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who this process is and what is known about it: the stream header's identity, and the records
 * that the writer thread appends about the process as a whole.
 */
#ifndef GPUPROF_INJECT_IDENTITY_H
#define GPUPROF_INJECT_IDENTITY_H

#include "record/thread.h"

/* Fills gp.header, all but the live path, with the scale and the zero times of process_clock. */
void identity_fill(void);

/* META records (command line, ranks, ...) and the API table: once, at start. */
void identity_append_all(struct thread *writer);

/* One ANCHOR: our clock, CLOCK_MONOTONIC and CLOCK_REALTIME of one moment. */
void identity_append_anchor(struct thread *writer);

/* The description of a function, "symbol|domain|class|kind:label,kind:label": see "Functions" in
 * event-stream.md. All has those of CUDA. */
void identity_append_function(struct thread *writer, unsigned code);

/* COUNTER records of those counters that changed since the last time. */
void identity_append_counters(struct thread *writer);

/* META records "library=PATH" for each libcuda, libcudart and libcupti that is newly mapped. */
void identity_append_libraries(struct thread *writer);

void identity_append_end(struct thread *writer, uint32_t reason);

#endif
