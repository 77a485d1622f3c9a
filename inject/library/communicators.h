/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The communicators of NCCL that are there: which one it is, on all ranks alike, who the caller is
 * in it, and how many collectives it was given so far. They are counted from its creation on,
 * whether anything is recorded or not, so that the n-th of one rank is the n-th of every other;
 * messages likewise, by their two ranks and the direction.
 *
 * A table of a fixed size, without a lock: of a communicator that finds no room nothing is counted,
 * and calls on it have the number 0. Calls on one communicator come one after another, as NCCL
 * demands. The child of a fork has its parent's table, as it has its parent's communicators.
 */
#ifndef GPUPROF_INJECT_COMMUNICATORS_H
#define GPUPROF_INJECT_COMMUNICATORS_H

#include <stdint.h>

#define COMMUNICATORS_MAX 8192u /* with the pairs of ranks that have sent each other anything */

struct thread;

/* The same for ids of the same 128 bytes; never 0. */
uint64_t communicator_id(const void *unique_id);

/* It was made, as that rank of so many (0: not known yet). */
void communicator_made(uint64_t handle, uint64_t id, uint32_t rank, uint32_t ranks);

/* So many, of one process: rank i is handles[i], on devices[i] (NULL: on device i). */
void communicators_made(const uint64_t *handles, uint32_t ranks, const int *devices);

/*
 * A communicator was split: each of its ranks says so, in the same order; `choice` is the same for
 * those that come into one. The handle may be 0: this rank is in none.
 */
void communicator_split(uint64_t parent, uint64_t handle, uint64_t choice);

/* How often it was split so far. */
uint64_t communicator_splits(uint64_t parent);

/* It is about to be destroyed: its address may be another's next. */
void communicator_ends(uint64_t handle);

/* What the next call that is counted by `key` (api_nccl.def) has; from 1 on, 0: not known. */
uint64_t communicator_next(uint64_t key);

/*
 * It is made, or a call on it is recorded: appends what it is, unless this recording has that. Asks
 * the library of the code at `caller` for what is not known of it (0: asks nobody, and says that it
 * has 0 ranks), errno is kept. Between call_enter_own and call_leave.
 */
void communicator_told(struct thread *t, uint64_t handle, uintptr_t caller);

#endif
