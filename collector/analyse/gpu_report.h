/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tables of sums (analyses.def) about devices and ranges: kernels, copies, graphs,
 * synchronisations, launches, ranges, overheads, device use. Names and order are those of `nsys
 * stats`. Busy times are unions of slices, updated event by event. The time in which copies overlap
 * kernels follows from the unions of kernels, copies and both. Memory grows with the rows, not with
 * the events.
 */
#ifndef GPUPROF_COLLECTOR_GPU_REPORT_H
#define GPUPROF_COLLECTOR_GPU_REPORT_H

#include "analyse/analyses.h"
#include "resolve/event_walk.h"

/* Extra values of some tables of times (sums_from). */
enum { KERNEL_MAKER = SUMS_OWN, KERNEL_MAKER_FUNCTION, KERNEL_MAKER_TEXT, KERNEL_VALUES };
enum { RANGE_GROUPS = SUMS_OWN };

/* Keys and values of the table of device use: a row is one number, a share of another. */
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

/* Which library calls launched the kernels of a name. */
enum kernel_maker {
    MAKER_UNKNOWN, /* not known for any kernel */
    MAKER_KNOWN,   /* calls of one function; with a text, of one shape */
    MAKER_NONE     /* of several functions, or some were launched in no call */
};

/* Joins the makers in a kernel's values: the more general one. */
void gpu_join_makers(uint64_t *to, const uint64_t *from);

/* The functions of struct sums_info that make the rows. (gpu_report.c) */
int launches_take(void *context, const struct rows *rows);
int uses_take(void *context, const struct rows *rows);
int uses_end(void *context);
int ranges_take(void *context, const struct slice *s);
int projected_take(void *context, const struct slice *s);
int projected_end(void *context);

#endif
