/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report says about devices and ranges: tables of rows with the same numbers, named and
 * ordered as `nsys stats` has them. Busy times are unions of slices, kept up event by event; the
 * time in which copies overlap kernels follows from the unions of the one, the other and both.
 * Memory is that of its rows (gpu_stats.h), whatever the number of events.
 */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_H
#define GPUPROF_COLLECTOR_GPU_REPORT_H

#include <stdio.h>

#include "analyse/gpu_stats.h"
#include "model/event_walk.h"
#include "table/table.h"

struct gpu_report;
struct ledger_user;
struct library_report;

/* NULL: no memory. `walk` must stay, and *histogram_rows, of which histograms take theirs.
 * `groups`: as of ranges (range_rows.h); `has_work`: the recording should have work of devices. */
struct gpu_report *gpu_report_create(struct walk *walk, enum report_by by, bool groups,
                                     bool has_work, uint64_t *histogram_rows);
void gpu_report_free(struct gpu_report *g);

/* The books of memory tell `user` as well. */
void gpu_report_tell(struct gpu_report *g, const struct ledger_user *user);

/* To be handed to the walk one behind the other; the `end` of the second leaves the rows complete.
 */
struct consumer gpu_report_books(struct gpu_report *g);
struct consumer gpu_report_consumer(struct gpu_report *g);

/* The rows, table after table, the longest time first; *count of them. */
const struct gpu_stat *gpu_report_rows(const struct gpu_report *g, uint32_t *count);

/* Is it of what the walk's filter has alone? */
bool gpu_report_is_piece(const struct gpu_report *g);

/* Before the walk: nobody will look at these (enum report_part). */
void gpu_report_leave(struct gpu_report *g, unsigned parts);

/* Which calls of libraries made the kernels; to be told after the walk, and to stay. */
void gpu_report_set_libraries(struct gpu_report *g, const struct library_report *libraries);
const char *gpu_report_maker(const struct gpu_report *g, const struct gpu_stat *row);

/* The work of all devices together, in one line's numbers. */
struct gpu_totals {
    uint32_t devices; /* that had any */
    uint64_t kernels;
    uint64_t busy_ns; /* each device's, added up */
    uint64_t span_ns; /* from its first to its last work, likewise */
};

/* After the walk. `g` may be NULL: then all are 0. */
struct gpu_totals gpu_report_totals(const struct gpu_report *g);

/* Of a struct gpu_report, which may be NULL. (gpu_report_print.c) */
extern const struct table_info gpu_tables[TABLE_COUNT];

#endif
