/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row of a trace (a thread or stream) that keeps its slices from overlapping. Viewers swallow or
 * drop slices that neither nest nor stay 1 ns apart; of slices with equal begins, the first in the
 * file is the outer one. An inner slice ends at least 1 ns before the outer one: readers add begin
 * and duration as doubles, and the rounded sums could cross otherwise.
 */
#ifndef GPUPROF_COLLECTOR_TRACE_ROW_H
#define GPUPROF_COLLECTOR_TRACE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#define ROW_DEPTH_MAX 64         /* open slices per row */
#define ROW_OPEN_END  UINT64_MAX /* for a slice whose end is unknown */

struct open_slice {
    uint64_t end_ns;
    uint64_t inner_ns; /* latest end for slices inside it */
    uint64_t since_ns; /* recorded begin, and ... */
    uint64_t begin_ns; /* ... shown begin, if the end is unknown */
};

/* A row's pid and tid, and the key "ts", as text. */
struct row_ids {
    char text[48];
    uint32_t bytes;
};

struct trace_row {
    struct row_ids ids;
    uint32_t depth;
    uint64_t begin_ns; /* of the last slice */
    struct open_slice open[ROW_DEPTH_MAX];
};

struct row_ids row_ids_of(uint32_t pid, uint32_t tid);

/* Fits a slice into its row: inside the open one, or at least 1 ns after it. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/* Returns true if it fits unchanged; else it crosses an open slice. */
bool trace_row_holds(const struct trace_row *row, uint64_t begin_ns, uint64_t end_ns);

/* Opens a slice whose end is not yet known; later slices begin after it. */
void trace_row_open(struct trace_row *row, uint64_t begin_ns);

/* Ends the open slice that began at *begin_ns: moves its times so that it contains its inner slices
 * and stays inside the outer one. Returns false if it must be shown elsewhere, since a slice that
 * began later is open, and drops it. */
bool trace_row_close(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/* Drops the open slice that began then; it is not shown. */
void trace_row_forget(struct trace_row *row, uint64_t begin_ns);

#endif
