/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls alone tell of devices, of processes whose devices have no rows: launches by kernel,
 * and copies by direction. Times are those of the calls, on the host.
 */
#ifndef GPUPROF_COLLECTOR_HOST_ROWS_H
#define GPUPROF_COLLECTOR_HOST_ROWS_H

#include "analyse/gpu_stats.h"
#include "model/event_walk.h"

/* Counts a CALL that launched a kernel, copied or set, in TABLE_HOST_LAUNCHES or TABLE_HOST_COPIES.
 * 0 or GPUPROF_NO_MEMORY. */
int host_rows_take(struct gpu_stats *stats, const struct slice *s);

#endif
