/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much device memory this process's calls hold, for who asks while it runs (the collector has
 * a ledger of its own): a table by address, as large as it must be. By the writer only.
 */
#ifndef GPUPROF_INJECT_HELD_H
#define GPUPROF_INJECT_HELD_H

#include <stdint.h>

struct record;

/* A recording begins: nothing is held. */
void held_reset(void);

/* A call that may get memory, or give it back, and when it began. Those of different threads may
 * come in any order, within some seconds. */
void held_see(const struct record *r, uint64_t begin_ns);

/* In bytes; UINT64_MAX: not known, since something was done that says no sizes (physical memory, a
 * reset of the device), or there were more blocks than HELD_BLOCKS_MAX. */
uint64_t held_bytes(void);
#define HELD_BLOCKS_MAX (1u << 19) /* in 48 MiB at most */

#endif
