/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpuprof costs in all, and how large a share of the program's time that is: from what its
 * threads have timed (thread_cost.h) times what was recorded, and from the processor time of our
 * own threads. All of it is the writer's.
 */
#ifndef GPUPROF_INJECT_COST_SUMS_H
#define GPUPROF_INJECT_COST_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cost/ladder.h"

struct chunk_owner;
struct thread;

/* A recording begins; on the writer's thread. */
void cost_sums_start(void);

/* The owner of that chunk has recorded something, or passed a call by. */
void cost_sums_active(struct chunk_owner *owner);

/* Records of one shape (record_shape_key), of the thread with that number in its chunks. */
void cost_sums_sealed(uint32_t index, uint32_t shape_key, uint32_t count);

/* The end of the last of them, in ns of the stream. */
void cost_sums_reached(uint32_t index, uint64_t last_ns);

/* Calls that it passed by. */
void cost_sums_passed(uint32_t index, uint64_t count);

/*
 * Closes the window that the last look began, once all of its records are sealed: adds it to the
 * sums, and fills w->share from the thread for which it is largest, and each of w->saves from the
 * one of those over w->budget that it would save most.
 */
void cost_sums_look(struct ladder_window *w);

/* Appends the sums to the stream. */
void cost_sums_append(struct thread *writer);

#endif
