/* SPDX-License-Identifier: Apache-2.0 */
/* Wakes the flushing thread (gpu_flush.h) and waits for its results, through futexes. */
#ifndef GPUPROF_INJECT_GPU_DRAIN_H
#define GPUPROF_INJECT_GPU_DRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Any thread requests; the flushing thread does the rest. */
struct gpu_flusher {
    _Atomic uint32_t requested; /* number of the last requested flush */
    _Atomic uint32_t done;      /* futex: number of the last flush done */
    _Atomic uint32_t running;
    atomic_bool is_forced; /* the next requested flush also takes unfinished work */
};

extern struct gpu_flusher gpu_flusher;

/* Makes the thread check at once for something to do. It waits on LIVE_OFFSET_WAKE, so other
 * processes can wake it, too. */
void gpu_flush_wake(void);

/*
 * Returns true when records of all work that the device has finished are in the thread's chunks, or
 * false after `ns`. Records of unfinished work are lost then, and counted. Any thread;
 * async-signal-safe.
 */
bool gpu_drain(uint64_t ns);

/* The same, except that unfinished work is recorded when it ends, together with what CUPTI keeps in
 * the same buffer. */
bool gpu_drain_finished(uint64_t ns);

#endif
