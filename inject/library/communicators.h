/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's communicators: an id that is the same on all ranks, the caller's rank, and the number of
 * collectives so far. They are counted from the communicator's creation on, recorded or not, so
 * that the n-th collective of one rank is the n-th of all others. Messages are counted likewise, by
 * both ranks and the direction.
 *
 * A table of fixed size, without a lock. For a communicator without space nothing is counted, and
 * its calls have the number 0. Calls on one communicator come one after another, as NCCL requires.
 * The child of a fork inherits the table, as it inherits the communicators.
 */
#ifndef GPUPROF_INJECT_COMMUNICATORS_H
#define GPUPROF_INJECT_COMMUNICATORS_H

#include <stdint.h>

#define COMMUNICATORS_MAX 8192u /* including the pairs of ranks that have exchanged messages */

struct thread;

/* The same for equal ids of 128 bytes; never 0. */
uint64_t communicator_id(const void *unique_id);

/* A communicator was created, as this rank of so many (0: not known yet). */
void communicator_made(uint64_t handle, uint64_t id, uint32_t rank, uint32_t ranks);

/* Several were created for the ranks of one process: rank i is handles[i] on devices[i] (NULL:
 * device i). */
void communicators_made(const uint64_t *handles, uint32_t ranks, const int *devices);

/* A communicator was split: each rank calls this, in the same order; `choice` is equal for ranks of
 * the same new one. A handle of 0: this rank is in none. */
void communicator_split(uint64_t parent, uint64_t handle, uint64_t choice);

/* Returns how often it was split so far. */
uint64_t communicator_splits(uint64_t parent);

/* It is about to be destroyed; its address may be reused. */
void communicator_ends(uint64_t handle);

/* Returns the number of the next call counted under `key` (api_nccl.def), from 1; 0: not known. */
uint64_t communicator_next(uint64_t key);

/*
 * It was created, or a call on it is recorded: appends its description, unless this recording has
 * it. Asks the library of the code at `caller` for what is not known (0: does not ask, and records
 * 0 ranks). Keeps errno. Call it between call_enter_own and call_leave.
 */
void communicator_reported(struct thread *t, uint64_t handle, uintptr_t caller);

#endif
