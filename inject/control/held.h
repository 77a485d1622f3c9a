/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the device memory that this process holds, for `gpuprof top` (the collector has its own
 * ledger): a table by address that grows as needed. Used only by the writer. */
#ifndef GPUPROF_INJECT_HELD_H
#define GPUPROF_INJECT_HELD_H

#include <stdint.h>

struct record;

/* Call it when a recording starts: nothing is allocated yet. */
void held_reset(void);

/* Counts a call that may allocate or free memory, and that began at `begin_ns`. Calls of different
 * threads may come in any order, within a few seconds. */
void held_see(const struct record *r, uint64_t begin_ns);

/* Returns the bytes held. UINT64_MAX: not known, since a call without sizes was made (physical
 * memory, device reset), or there were more than HELD_BLOCKS_MAX blocks. */
uint64_t held_bytes(void);
#define HELD_BLOCKS_MAX (1u << 19) /* uses at most 48 MiB */

#endif
