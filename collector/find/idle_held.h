/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gaps of a device between two kernels that copies and sets of another thread ended than the one
 * that launched the last kernel. Whose they are is known when the next kernel comes: of the thread
 * that launches that one, as if there had been no copy; of the copies' where it may have waited for
 * these (GUIDE.md, "Why is the GPU idle?"). Until then they are held. Memory: 40 bytes a
 * gap, IDLE_HELD_MAX of all devices at most, and 96 a row of each; then they are the copies'.
 */
#ifndef GPUPROF_COLLECTOR_IDLE_HELD_H
#define GPUPROF_COLLECTOR_IDLE_HELD_H

#include "find/idle_gap.h"

#define IDLE_HELD_MAX (1u << 16)

struct idle_held {
    struct idle_gap gap;     /* the first one, to the end of the last one */
    struct idle_span *spans; /* owned: those gaps */
    uint32_t span_count;
    uint32_t span_capacity;
    struct idle_row *rows; /* owned: what they are of the threads' that copied, gap by gap */
    uint32_t row_count;
    uint32_t row_capacity;
    uint32_t serial; /* that these threads have in `held` (idle_thread.h) */
};

void idle_held_release(struct idle_held *h);

/* One more. 0 or GPUPROF_NO_MEMORY. */
int idle_held_add(struct idle_held *h, const struct idle_gap *gap);

/* Of a gap that a copy ends: does the thread that launched the last kernel not wait for that? */
bool idle_held_may_hold(const struct idle_gap *gap, const struct idle_maker *launcher);

/*
 * The device was busy until then, and the next kernel's call begins at call_ns (0: whatever it is):
 * what is the copies' is added to the rows and causes; the others stay, without rows. 0 or
 * GPUPROF_NO_MEMORY.
 */
int idle_held_give(struct idle_held *h, uint64_t busy_ns, uint64_t call_ns, struct idle_rows *rows,
                   uint64_t causes[static IDLE_CAUSES]);

/* After that: those that stay are of the call that `of` says, which made the kernel. 0 or
 * GPUPROF_NO_MEMORY. */
int idle_held_charge(struct idle_held *h, const struct idle_gap *of, struct idle_rows *rows,
                     uint64_t causes[static IDLE_CAUSES]);

#endif
