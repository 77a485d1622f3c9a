/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What gpuprof costs in total, and its share of the program's time. The cost is what threads have
 * timed (thread_cost.h) times the number of records, plus the CPU time of our own threads. Only the
 * writer uses it.
 */
#ifndef GPUPROF_INJECT_COST_SUMS_H
#define GPUPROF_INJECT_COST_SUMS_H

#include <stdbool.h>
#include <stdint.h>

#include "cost/ladder.h"

struct chunk_owner;
struct thread;

/* Call it on the writer's thread when a recording starts. */
void cost_sums_start(void);

/* The chunk's owner has recorded something, or passed a call by. */
void cost_sums_active(struct chunk_owner *owner);

/* Counts sealed records of one shape (record_shape_key) of the thread with that index. */
void cost_sums_sealed(uint32_t index, uint32_t shape_key, uint32_t count);

/* `last_ns` is the end of the last of these records, in ns of the stream. */
void cost_sums_reached(uint32_t index, uint64_t last_ns);

/* Counts calls that the thread passed by. */
void cost_sums_passed(uint32_t index, uint64_t count);

/*
 * Closes the window after all its records are sealed and adds it to the sums. Fills w->share with
 * the largest share of any thread, and w->saves with the largest saving that each step has for a
 * thread above w->budget.
 */
void cost_sums_look(struct ladder_window *w);

/* Appends the sums to the stream. */
void cost_sums_append(struct thread *writer);

#endif
