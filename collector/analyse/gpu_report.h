/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Feeds the tables of sums (analyses.def) of what devices and ranges did: of kernels, copies,
 * graphs, synchronisations, launches, ranges, overheads, and how busy devices were, named and
 * ordered as `nsys stats` has them. Busy times are unions of slices, kept up event by event; the
 * time in which copies overlap kernels follows from the unions of the one, the other and both.
 * Memory is that of the rows, whatever the number of events.
 */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_H
#define GPUPROF_COLLECTOR_GPU_REPORT_H

#include "analyse/analyses.h"
#include "base/options.h"
#include "resolve/event_walk.h"

struct gpu_report;
struct report;

/* What some tables of times have beside their values (sums_from). */
enum { KERNEL_MAKER = SUMS_OWN, KERNEL_MAKER_FUNCTION, KERNEL_MAKER_TEXT, KERNEL_VALUES };
enum { RANGE_GROUPS = SUMS_OWN };

/* Keys and values of those of devices: one number a row, which is a part of another. */
enum { GPU_USE_PROCESS, GPU_USE_DEVICE, GPU_USE_WHAT };
enum {
    GPU_USE_SPAN,
    GPU_USE_BUSY,
    GPU_USE_IDLE,
    GPU_USE_KERNELS,
    GPU_USE_COPIES,
    GPU_USE_BOTH,
    GPU_USES
};
enum { GPU_USE_ROWS, GPU_USE_NS, GPU_USE_OF };
enum { PEAK_ALLOCATED, PEAK_RESERVED };

/* Which calls of libraries launched the kernels of a name. Of two the larger one holds. */
enum kernel_maker {
    MAKER_UNKNOWN, /* of no kernel it is known */
    MAKER_KIND,    /* calls of one function and shape */
    MAKER_FUNCTION,
    MAKER_SEVERAL, /* functions */
    MAKER_NONE     /* some or all were launched in no call */
};

/* Of two that have one function each, but not the same, the more general one. */
void gpu_join_makers(struct row_name *to, const struct row_name *from);

/* When the resolver's names say what launched their kernels: the table of kernels does, too. */
int gpu_take_makers(struct report *report);

/* Might ranges be other groups, had they come in another order? */
bool gpu_report_is_unsure(const struct gpu_report *g);

/* The work of all devices together, in one line's numbers. */
struct gpu_totals {
    uint32_t devices; /* that had any */
    uint64_t busy_ns; /* each device's, added up */
    uint64_t span_ns; /* from its first to its last work, likewise */
};

/* Of the table of the use of devices, after the walk. */
struct gpu_totals gpu_totals(const struct sums *use);

#endif
