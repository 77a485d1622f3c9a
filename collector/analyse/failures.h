/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that calls returned: which, how often, and where each came first. The first is the
 * cause: an error of a device stays, and every later call returns it, too. Rows are in the order of
 * their first time.
 */
#ifndef GPUPROF_COLLECTOR_FAILURES_H
#define GPUPROF_COLLECTOR_FAILURES_H

#include "analyse/analyses.h"

#define FAILURES_MAX 4096

/* The name of the error, "cudaErrorMemoryAllocation"; it may be in `text`. */
#define FAILURE_TEXT_BYTES 96
const char *failure_name(const struct sums_row *row, char text[static FAILURE_TEXT_BYTES]);

#endif
