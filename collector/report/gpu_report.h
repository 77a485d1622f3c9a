/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the report says about devices and ranges: tables of rows with the same numbers, named and
 * ordered as `nsys stats` has them. Busy times are unions of slices, kept up event by event; the
 * time in which copies overlap kernels follows from the unions of the one, the other and both.
 * Memory depends on the number of different names, at most GPU_STATS_MAX, and on the size of the
 * files, not on the number of events.
 */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_H
#define GPUPROF_COLLECTOR_GPU_REPORT_H

#include <stdio.h>

#include "base/histogram.h"
#include "base/options.h"
#include "model/event_walk.h"
#include "table/table.h"

#define GPU_STATS_MAX 65536 /* rows: one for all others is the last of each table */

/* So many for free, and one for so many bytes of the files: a real name takes more. */
#define GPU_STATS_FREE       4096
#define GPU_STATS_FILE_BYTES 16

enum gpu_table {
    TABLE_KERNELS,
    TABLE_COPIES,
    TABLE_SIZES, /* of the same, in bytes */
    TABLE_GRAPHS,
    TABLE_SYNCS,
    TABLE_LAUNCHES, /* from call to kernel */
    TABLE_RANGES,
    TABLE_PROJECTIONS,
    TABLE_OVERHEADS,
    TABLE_DEVICES,
    TABLE_MEMORY,
    TABLE_COUNT
};

struct gpu_stat {
    enum gpu_table table;
    char *name;     /* owned */
    uint64_t order; /* of rows that are not ordered by their time */
    uint64_t count;
    uint64_t total_ns;
    uint64_t min_ns;
    uint64_t max_ns;
    uint64_t bytes; /* in all; of TABLE_MEMORY the largest sum at a time */
    uint64_t of_ns; /* of TABLE_DEVICES: what total_ns is a part of; 0: of nothing */
    const struct process
        *unnamed; /* of a kernel whose name is not known yet; NULL: it is, or none */
    uint64_t number, grid, block; /* of that kernel */
    struct histogram durations;
};

struct gpu_report;

/* NULL: no memory. `walk` must stay, and *histogram_rows, of which histograms take theirs.
 * `has_work`: the recording should have work of devices. */
struct gpu_report *gpu_report_create(struct walk *walk, enum report_by by, bool has_work,
                                     uint64_t *histogram_rows);
void gpu_report_free(struct gpu_report *g);

/* Of all slices but calls. Its `end` leaves the rows complete. */
struct consumer gpu_report_consumer(struct gpu_report *g);

/* The rows, table after table, the longest time first; *count of them. */
const struct gpu_stat *gpu_report_rows(const struct gpu_report *g, uint32_t *count);

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
