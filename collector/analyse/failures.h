/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The errors that calls have returned: which, how often, and where each came first. The very first
 * is what went wrong; an error of a device stays, and all calls after it return it, too. Rows are
 * in the order of their first coming.
 */
#ifndef GPUPROF_COLLECTOR_FAILURES_H
#define GPUPROF_COLLECTOR_FAILURES_H

#include "analyse/analyses.h"

#define FAILURES_MAX 4096

/* "cudaErrorMemoryAllocation", which may be in `text`. */
#define FAILURE_TEXT_BYTES 96
const char *failure_name(const struct sums_row *row, char text[static FAILURE_TEXT_BYTES]);

#endif
