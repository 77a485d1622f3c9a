/* SPDX-License-Identifier: Apache-2.0 */
/* The way to wake the flushing thread (gpu_flush.h), and to wait for what it brings: by futexes. */
#ifndef GPUPROF_INJECT_GPU_DRAIN_H
#define GPUPROF_INJECT_GPU_DRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Requests by any thread; the rest by the flushing thread. */
struct gpu_flusher {
    _Atomic uint32_t requested; /* number of the last flush that somebody wants */
    _Atomic uint32_t done;      /* futex: number of the last flush done */
    _Atomic uint32_t running;
    atomic_bool is_forced; /* the next flush that somebody wants takes what is not finished, too */
};

extern struct gpu_flusher gpu_flusher;

/* It looks at once what is to do. It waits on LIVE_OFFSET_WAKE: other processes wake it, too. */
void gpu_flush_wake(void);

/*
 * Everything that the device has finished so far is in the thread's chunks when this returns true;
 * false: `ns` passed before. What it has not finished is lost then, and counted. From any thread;
 * async-signal-safe.
 */
bool gpu_drain(uint64_t ns);

/* The same, but work that is under way is told of when it has ended, and what CUPTI keeps in a
 * buffer with such work comes then. */
bool gpu_drain_finished(uint64_t ns);

#endif
