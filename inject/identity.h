/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who this process is and what is known about it: the stream header's identity, and the records
 * that the writer thread appends about the process as a whole.
 */
#ifndef GPUPROF_INJECT_IDENTITY_H
#define GPUPROF_INJECT_IDENTITY_H

#include "stream.h"
#include "thread.h"

/* Fills everything but the clock and the live path. */
void identity_fill(struct stream_header *header);

/* META records (command line, ranks, ...) and the API table: once, at start. */
void identity_append_all(struct thread *writer);

/* One ANCHOR: our clock, CLOCK_MONOTONIC and CLOCK_REALTIME of one moment. */
void identity_append_anchor(struct thread *writer);

/* COUNTER records of those counters that changed since the last time. */
void identity_append_counters(struct thread *writer);

/* META records "library=PATH" for each libcuda, libcudart and libcupti that is newly mapped. */
void identity_append_libraries(struct thread *writer);

/* META record "stacks": where they come from, once that is settled, or at last. */
void identity_append_stacks(struct thread *writer, bool is_last);

/* META records "gpu_kinds" and "gpu_rows": where they come from, and again when that changes. */
void identity_append_gpu(struct thread *writer);

/* The same, from the thread that has just started CUPTI: after a kill in the next moment, it is
 * what tells that its launches' work is missing. */
void identity_tell_gpu(struct thread *t);

/* META record "python", when there is an interpreter, and again when there is more to say of it. */
void identity_append_python(struct thread *writer);

void identity_append_end(struct thread *writer, uint32_t reason);

#endif
