/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of a trace, a thread or a stream: keeps its slices from overlapping. Viewers swallow or
 * drop slices of a row that neither nest nor stay 1 ns apart, and take the one that is first in the
 * file for the outer one where two begin at the same time. An inner slice ends at least 1 ns before
 * the outer one: readers add begin and duration as doubles, whose sums, rounded, would else cross.
 */
#ifndef GPUPROF_COLLECTOR_TRACE_ROW_H
#define GPUPROF_COLLECTOR_TRACE_ROW_H

#include <stdbool.h>
#include <stdint.h>

#define ROW_DEPTH_MAX 64         /* slices open at a time in a row */
#define ROW_OPEN_END  UINT64_MAX /* of a slice whose end is not known yet */

struct trace_row {
    char ids[48]; /* pid, tid and the name of ts */
    uint32_t ids_bytes;
    uint32_t depth;
    uint64_t begin_ns; /* of the last slice */
    uint64_t ends_ns[ROW_DEPTH_MAX];
    uint64_t inner_ns[ROW_DEPTH_MAX]; /* what is inside of it ends by then */
};

void trace_row_name(struct trace_row *row, uint32_t pid, uint32_t tid);

/* Fits a slice into its row: inside the one that is open, or at least 1 ns behind it. */
void trace_row_fit(struct trace_row *row, uint64_t *begin_ns, uint64_t *end_ns);

/*
 * The same for one whose end will be known later; what comes next begins later than it. Returns its
 * begin.
 */
uint64_t trace_row_open(struct trace_row *row, uint64_t begin_ns);

/*
 * Ends the innermost open slice: *end_ns is moved so that the slice holds what came into it and
 * stays in what is around it. False if none is open.
 */
bool trace_row_close(struct trace_row *row, uint64_t *end_ns);

/* Forgets an open slice that is not the innermost: it will be shown elsewhere. */
void trace_row_forget(struct trace_row *row);

#endif
