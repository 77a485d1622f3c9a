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

enum { PEAK_ALLOCATED, PEAK_RESERVED }; /* keys of the table of memory */

/* Which library calls launched the kernels of a name. */
enum kernel_maker {
    MAKER_UNKNOWN, /* not known for any kernel */
    MAKER_KNOWN,   /* calls of one function; with a text, of one shape */
    MAKER_NONE     /* of several functions, or some were launched in no call */
};

/* Joins the makers in a kernel's values: the more general one. */
void gpu_join_makers(uint64_t *to, const uint64_t *from);

#endif
