/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this process, and what is known about it: the stream header, and the records that
 * the writer thread appends about the process as a whole. */
#ifndef GPUPROF_INJECT_IDENTITY_H
#define GPUPROF_INJECT_IDENTITY_H

#include "record/thread.h"

/* Fills gp.header, except for the live path, with the scale and the zero times of process_clock. */
void identity_fill(void);

/* Writes META records (command line, ranks, ...) and the API table: once, at the start. */
void identity_append_all(struct thread *writer);

/* Writes one ANCHOR: our clock, CLOCK_MONOTONIC and CLOCK_REALTIME at one moment. */
void identity_append_anchor(struct thread *writer);

/* Writes the description of a function, "symbol|domain|class|kind:label,kind:label": see
 * "Functions" in event-stream.md. identity_append_all writes those of CUDA. */
void identity_append_function(struct thread *writer, unsigned code);

/* Writes COUNTER records of counters that have changed since the last call. */
void identity_append_counters(struct thread *writer);

/* Writes META records "library=PATH" for each newly mapped libcuda, libcudart and libcupti. */
void identity_append_libraries(struct thread *writer);

void identity_append_end(struct thread *writer, uint32_t reason);

#endif
