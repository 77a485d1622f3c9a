/* SPDX-License-Identifier: Apache-2.0 */
/* What gpu_report.c has gathered, for those files that go on with it (gpu_report_part.c). */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_STATE_H
#define GPUPROF_COLLECTOR_GPU_REPORT_STATE_H

#include "analyse/memory_peaks.h"
#include "analyse/range_rows.h"
#include "table/table.h"

#define RECENT_KERNELS 256

struct library_report;

enum launch_row { LAUNCH_LATENCY, LAUNCH_QUEUE, LAUNCH_CALL, LAUNCH_ROWS };

/* The time covered by slices that come in the order of their begins. */
struct covered {
    uint64_t end_ns;
    uint64_t total_ns;
};

struct device_use {
    struct process *process;
    uint64_t device;
    uint64_t begin_ns;
    uint64_t end_ns;
    struct covered busy;
    struct covered kernels;
    struct covered copies;
};

/* A kernel whose row was asked for. */
struct recent_kernel {
    uint32_t process;
    uint32_t place; /* of the row, + 1; 0: free */
    uint64_t number;
};

struct device_peak {
    struct process *process;
    uint64_t device;
    uint64_t allocated;
    uint64_t reserved; /* 0: no pools */
};

struct gpu_report {
    struct recording *rec;
    struct walk *walk;
    enum report_by by;
    bool has_work;
    bool *is_host; /* owned, by process index: its devices have no rows */
    bool has_host; /* any of them */
    struct gpu_stats stats;
    struct range_rows ranges;
    struct key_map unnamed;       /* (process, number) of kernels -> a number for their keys */
    struct key_map device_places; /* (process, device) -> place + 1 */
    struct device_use *devices;   /* owned */
    uint32_t device_count;
    uint32_t device_capacity;
    struct memory_peaks memory;
    struct device_peak *peaks; /* owned: what comes of it */
    uint32_t peak_count;
    uint32_t peak_capacity;
    struct recent_kernel recent[RECENT_KERNELS];
    uint32_t last_use;                 /* place of the device that was asked for last */
    uint32_t launch_rows[LAUNCH_ROWS]; /* places + 1: each kernel has something for all of them */
    unsigned leaves;                   /* enum report_part */
    const struct library_report *libraries; /* a view; NULL: not told */
};

/* All rows are there: those of devices follow, by process and number, and each table is put into
 * order. 0 or GPUPROF_NO_MEMORY. */
int gpu_report_complete(struct gpu_report *g);

#endif
